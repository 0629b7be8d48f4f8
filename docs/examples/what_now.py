"""One run for each way to end that is not solved."""

# parts
import numpy as np

import minmaxcon as mm

rows = np.random.default_rng(0).normal(size=(100, 2))
data = mm.Finite({"z": rows}, engine="torch")


class Distance(mm.StochasticMinMaxConstraint):  # f_0 = E |x - z|^2 / 2
    name, convex = "distance", True

    def terms(self, x, batch):
        return 0.5 * ((x[..., None, :] - batch["z"]) ** 2).sum(-1).mean(-1), None


class Side(mm.StochasticMinMaxConstraint):  # f_i = E <sign x + z> <= bound, in the first coordinate
    name, convex = "side", True

    def __init__(self, sign, bound):
        self.sign, self.bound = sign, bound

    def terms(self, x, batch):
        return (self.sign * x[..., None, 0] + 0 * batch["z"][:, 0]).mean(-1), None


def problem(*sides, objective=None, radius=2.0):
    return mm.MinMaxProblem(objective or Distance(), [Side(*side) for side in sides], mm.Ball(2, radius), data)


def tell(solution):
    print(solution.status.name, "-", solution.reason)


# end of the parts

# infeasible
tell(mm.solve(problem((-1.0, -1.0), (1.0, -1.0)), seed=0))  # x_1 >= 1 and x_1 <= -1
# end

# tight
tell(mm.solve(problem((-1.0, -1.0), (1.0, 1.0)), seed=0))  # x_1 >= 1 and x_1 <= 1
tell(mm.solve(problem((-1.0, -1.0), (1.0, 1.05)), seed=0))  # x_1 >= 1 and x_1 <= 1.05
# end

# budget
wanted = problem((-1.0, -1.0))
tell(mm.solve(wanted, mm.SFLS(oracle=mm.SMD(steps=20)), seed=0, budget=40))
# end


# inconsistent
class Wrong(Distance):  # declared convex, and it is not
    def terms(self, x, batch):
        return -super().terms(x, batch)[0], None


tell(mm.solve(problem((-1.0, -1.0), objective=Wrong()), seed=0))
# end


# diverged
class Root(Distance):  # f_0 = (1.2 - x_1)^{3/2}: no number for x_1 > 1.2
    def terms(self, x, batch):
        return ((1.2 - x[..., None, 0] + 0 * batch["z"][:, 0]) ** 1.5).mean(-1), None


tell(mm.solve(problem((-1.0, 1.0), objective=Root()), seed=0))
tell(mm.solve(problem((-1.0, 1.0), objective=Root(), radius=1.0), seed=0, budget=20_000))  # a set that keeps off
# end

# reach
import warnings

from minmaxcon_problems.fair_auc import FairAUCClassifier

warnings.simplefilter("ignore")  # the fit warns that it did not meet its target
rng = np.random.default_rng(0)
group = np.repeat(["a", "b"], 200)
label = (rng.random(400) < np.where(group == "a", 0.8, 0.2)).astype(int)
features = (3.0 * label + 2.0 * (group == "a") + rng.normal(size=400))[:, None]  # one feature: nothing to trade
fair = FairAUCClassifier("inter_group", max_gap=0.01, random_state=0)
fair.fit(features, label, sensitive_features=group)
print(fair.status_.name, "-", fair.reason_)
# end

# unfinished
hurried = FairAUCClassifier("inter_group", max_gap=0.01, random_state=0, time_limit=0.0001)
hurried.fit(features, label, sensitive_features=group)
print(hurried.status_.name, "-", hurried.reason_)
# end
