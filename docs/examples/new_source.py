"""A source of one's own: normal vectors, made batch by batch from the random numbers of the position."""

# start
import numpy as np

import minmaxcon as mm


class Normal(mm.Source):
    """A stream of vectors with unit variances."""

    def __init__(self, mean):
        self.mean = np.array(mean)
        self.like = np.zeros(0)  # engine and precision of the samples

    def draw(self, position, steps, batch_size):
        rng = position.rng()
        shape = (batch_size, len(self.mean))
        batches = [{"z": self.mean + rng.normal(size=shape)} for _ in range(steps)]
        return iter(batches), mm.Position(rng.bit_generator.state, position.samples + steps * batch_size)


class Distance(mm.StochasticMinMaxConstraint):  # f_0 = E |x - z|^2 / 2
    name, convex = "distance", True

    def evaluate(self, x, batch):
        value = 0.5 * ((x[..., None, :] - batch["z"]) ** 2).sum(-1).mean(-1)
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (x - batch["z"].mean(0)))


class Half(mm.StochasticMinMaxConstraint):  # f_1 = E <z, x> <= 1
    name, convex, bound = "half-space", True, 1.0

    def evaluate(self, x, batch):
        mean = batch["z"].mean(0)
        return mm.Evaluation(x @ mean, x[..., :0], lambda y, _: y[..., None] * mean)


problem = mm.MinMaxProblem(Distance(), [Half()], mm.Ball(2, 1.0), Normal([1.0, 1.0]), start=np.zeros(2))
solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0, budget=20_000)
print(solution.status.name, solution.x.round(2), "- the optimum is (0.5, 0.5), where f_0 = 1.25")
print(solution.certificate)
# end
