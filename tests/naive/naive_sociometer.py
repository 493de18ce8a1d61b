"""The Sociometer and its scores written from their definitions, one number after the other."""

import math
from collections import Counter

# ------------------------------------------------------------------------------------------------------------------ Sociometer
WORKING_WEEKDAYS = [(week * 2 + 0) * 3 + 1 for week in range(4)]  # cell (week · 2 + part) · 3 + slot: weekdays, P2


def euclidean(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def manhattan(a, b):
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def cosine(a, b):
    dot, length = sum(x * y for x, y in zip(a, b, strict=True)), math.hypot(*a) * math.hypot(*b)
    return 1 - (dot / length if length else 0.0)


def nearest(profile, others, distance=euclidean):
    """The first of the nearest; distances that differ by rounding are equal."""
    distances = [distance(profile, other) for other in others]
    return next(i for i, d in enumerate(distances) if d <= min(distances) + 1e-9)


def labels(profiles, prototypes, archetypes, categories, distance=euclidean, rule=False):
    """Phases 3 and 4 of §3.2 and Figure 2."""
    assigned = []
    for profile in profiles:
        present = [x for x in profile if x != 0]
        if rule and len(present) == 1 and sum(profile) < 0.5:
            assigned.append("passing by")
        else:
            prototype = prototypes[nearest(profile, prototypes)]
            assigned.append(categories[nearest(prototype, archetypes, distance)])
    return assigned


def spread_of(profiles, prototypes):
    """What k-means makes small: the sum of the squared distances to the nearest prototype."""
    return sum(min(euclidean(p, c) for c in prototypes) ** 2 for p in profiles)


def confused(true, predicted, categories):
    """(true, found) -> how many, and which share of the true class."""
    counts, of_class = Counter(zip(true, predicted, strict=True)), Counter(true)
    return {
        (t, f): (counts[t, f], counts[t, f] / of_class[t] if of_class[t] else math.nan) for t in categories for f in categories
    }


def scored(true, predicted, category):
    """Precision, recall, F-score; None where 0/0."""
    hits = sum(t == f == category for t, f in zip(true, predicted, strict=True))
    n_predicted, n_true = sum(f == category for f in predicted), sum(t == category for t in true)
    precision, recall = hits / n_predicted if n_predicted else None, hits / n_true if n_true else None
    if precision and recall:
        return precision, recall, 2 * precision * recall / (precision + recall)
    return precision, recall, 0.0 if n_predicted or n_true else None
