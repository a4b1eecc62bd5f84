class Learner:
    network = False
