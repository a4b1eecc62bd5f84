"""Learners that need no network, and one that needs no edges: what an augmented network has to beat."""
