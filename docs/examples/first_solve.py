"""The first problem of researchers: the paper's surrogate of fair AUC, bounded by kappa, with a certificate."""

# start
import minmaxcon as mm

problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=0.1)
solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0)

print(solution.status.value)
print("objective", round(solution.objective, 4))
print("f_i - b_i", solution.constraints.round(4))
print("certificate", solution.certificate)
# end
