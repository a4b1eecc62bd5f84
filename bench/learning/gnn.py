from bench.learning.learner import Learner


class GNN(Learner):
    network = True
