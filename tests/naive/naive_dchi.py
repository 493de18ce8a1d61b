"""Slow twins of the dχ chapter, written from the definitions of Olivier and Quertier user by user and POI by POI, in plain Python."""

import math
from itertools import product


def counts(calls, poi_of, users, pois, start, end):
    """Example 2: {(user, poi): c_ij} of records (user, t, cell) in [start, end)."""
    return {
        (u, p): sum(1 for who, t, cell in calls if who == u and start <= t < end and poi_of.get(cell) == p)
        for u in users
        for p in pois
    }


def affinity(b):
    n, m = len(b), len(b[0])
    return [[sum(1 for row in b if row[j1] and row[j2]) / n for j2 in range(m)] for j1 in range(m)]


def relative(row, aff, j):
    """Aff(i, j) of Definition 8."""
    return sum(aff[j1][j] for j1 in range(len(row)) if row[j1])


def neighbourhood(row, aff, n, variant="printed", ties="all"):
    """N(b, n) as a set, sorted lists and all."""
    m = len(row)
    visited = {j for j in range(m) if row[j]}
    among = [j for j in range(m) if variant == "printed" or j not in visited]
    falling = sorted(among, key=lambda j: (-round(relative(row, aff, j), 9), j))
    if ties == "first":
        return visited | set(falling[:n])
    values = {round(relative(row, aff, j), 9) for j in falling[:n]}
    return visited | {j for j in among if round(relative(row, aff, j), 9) in values}


def l1(a, b):
    return sum(abs(int(x) - int(y)) for x, y in zip(a, b, strict=True))


def profile_guess(perturbed, known, delta):
    """Definition 10: profileGuess(i, δ) for one sanitised profile."""
    return {j for j in range(len(known)) if l1(known[j], perturbed) <= delta}


def algorithm_11(published, known, delta, max_candidates):
    hits = 0
    for i in range(len(published)):
        guess = profile_guess(published[i], known, delta)
        hits += i in guess and len(guess) <= max_candidates
    return hits / len(published)


def algorithm_12(perturbed, aff, tau, number):
    visited = [j for j in range(len(perturbed)) if perturbed[j] != 0]
    inconsistent = {j for j in visited if sum(1 for other in visited if aff[j][other] < tau) >= number}
    return [0 if j in inconsistent else perturbed[j] for j in range(len(perturbed))]


def algorithm_13(perturbed, true, form="unbiased"):
    alpha = sum(abs(int(x) - int(y)) for x, y in zip(perturbed, true, strict=True)) / len(true)
    return alpha / len(true) if form == "printed" else alpha


def algorithm_14(perturbed, true, form="unbiased"):
    """ε̃, not 1/ε̃."""
    inverse = l1(perturbed, true) / len(true) / (math.sqrt(2) if form == "printed" else 1)
    return 1 / inverse if inverse else math.inf


def poi_guess(row, chi):
    """Definition 15, a set of zeros being no guess."""
    largest = max((row[j] for j in chi), default=0)
    return {j for j in range(len(row)) if row[j] == largest and largest > 0}


def algorithm_16(perturbed, known, guesses, delta):
    """P̄ of one sanitised profile: empty where P is."""
    guess = profile_guess(perturbed, known, delta)
    return set.intersection(*[guesses[j] for j in guess]) if guess else set()


def laplace_cdf(x, scale):
    return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)


def laplace_probability(y, c, scale, rounding):
    """P(max(0, [c + Laplace]) = y), by the distribution function at the two ends of what is rounded to y."""
    low, high = (y - 0.5, y + 0.5) if rounding == "nearest" else (y, y + 1)
    below = 0.0 if y == 0 else laplace_cdf(low - c, scale)
    return laplace_cdf(high - c, scale) - below


def geometric_probability(y, c, epsilon):
    q = math.exp(-epsilon)
    law = lambda k: (1 - q) / (1 + q) * q ** abs(k)  # noqa: E731
    return law(y - c) if y else sum(law(k) for k in range(-c - 400, -c + 1))


def flip_probability(y, b, p):
    return p if (int(y) + int(b)) % 2 else 1 - p


def profile_probability(perturbed, true, chi, probability):
    """P(ã | a): the POIs in χ are independent, the others are published as they are."""
    joint = 1.0
    for j in range(len(true)):
        joint *= probability(perturbed[j], true[j]) if j in chi else float(perturbed[j] == true[j])
    return joint


def worst_ratio(pairs, outputs, probability):
    """max over outputs of |ln P(y|a) − ln P(y|a')| / |a − a'|₁ over pairs of (profile, its χ) each."""
    worst = 0.0
    for (a, chi), (other, others_chi) in pairs:
        for perturbed in outputs:
            p, q = (
                profile_probability(perturbed, a, chi, probability),
                profile_probability(perturbed, other, others_chi, probability),
            )
            if p > 0 and q > 0:
                worst = max(worst, abs(math.log(p / q)) / l1(a, other))
            elif p > 0 or q > 0:
                return math.inf
    return worst


def boolean_profiles(m):
    return [tuple(bits) for bits in product((False, True), repeat=m)]


def within(delta, size, p):
    """P(d(b, b̃) ≤ δ), the formula of §V-C."""
    return sum(math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(delta + 1))
