"""The first example of the documentation and of the README: fair AUC on mortgage applications, in ten lines."""

# start
import minmaxcon as mm

problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=0.1)
solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0)

print(solution.status.value)
print("objective", solution.objective)
print("f_i - b_i", solution.constraints)
print("certificate", solution.certificate)
# end
