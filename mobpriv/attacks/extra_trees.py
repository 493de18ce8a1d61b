"""Extremely Randomized Trees over few non-zero features a row, compiled; the forest is scikit-learn's to the last bit.

scikit-learn looks at a node feature by feature, and adds up all classes for each. Here one pass over a node's rows finds what
each feature is there, and a cut-point costs only the rows where the feature is not zero. A leaf stores only the classes in it.
The random numbers are drawn in the same order. Counts of classes are whole numbers, so the order of adding them up is free.

Source: Geurts, Ernst, Wehenkel, Machine Learning 63, 2006; scikit-learn 1.9, ``sklearn/tree/_splitter.pyx`` and ``_tree.pyx``.
"""

from typing import NamedTuple, Self

import numba
import numpy as np
from scipy.sparse import csc_array, csr_array

_SMALLEST_RANGE = np.float32(1e-7)  # a feature that varies by no more in a node is constant there
_ROUNDING = np.finfo(float).eps  # an impurity that is not larger is 0
_LARGEST = 2**31 - 1  # random number
_AT_ONCE = 1024  # rows whose classes are predicted together


class Trees(NamedTuple):
    """Trained trees; a row of each array is a tree."""

    feature: np.ndarray  # of a node; -1: a leaf
    threshold: np.ndarray  # of a node: values up to it go left
    first: np.ndarray  # the left child; of a leaf, where its classes begin in leaf_class
    last: np.ndarray  # the right child; of a leaf, where they end
    leaf_class: np.ndarray
    leaf_share: np.ndarray  # of a leaf's rows that are of this class
    importance: np.ndarray  # decrease of impurity by feature


class ExtraTrees:
    """Extremely Randomized Trees by the Gini impurity, each on all rows: scikit-learn's ``ExtraTreesClassifier``.

    A node takes the best of a share of the features, ``max_features``.
    """

    def __init__(self, trees: int, max_features: float, min_leaf: int, min_split: int, seed: int):
        self.trees, self.max_features, self.seed = trees, max_features, seed
        self.least = min_leaf, max(min_split, 2 * min_leaf)  # rows in a leaf, and in a node that is split

    def fit(self, examples: csc_array, classes: np.ndarray) -> Self:
        """Learn from ``examples`` in single precision, whose ``classes`` are 0, 1, 2, …"""
        rng, of_node = np.random.RandomState(self.seed), max(1, int(self.max_features * examples.shape[1]))
        seeds = [rng.randint(_LARGEST) for _ in range(self.trees)]
        states = np.array([np.random.RandomState(seed).randint(_LARGEST) for seed in seeds])
        self.classes_ = np.arange(classes.max() + 1)
        classes = classes.astype(np.int64)
        self.trees_ = Trees(
            *_grown(_rows(examples), examples.shape[1], classes, len(self.classes_), states, of_node, self.least)
        )
        return self

    def predict_proba(self, examples: csr_array) -> np.ndarray:
        """Return each row's mean share of each class in its leaves."""
        return _mean_share(_rows(examples), examples.shape[1], len(self.classes_), self.trees_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Return by how much each feature decreases the impurity, as shares of the sum; the mean over trees that split."""
        by_tree = [tree / (tree.sum() or 1.0) for tree in self.trees_.importance[self.trees_.feature[:, 0] >= 0]]
        mean = np.mean(by_tree, axis=0) if by_tree else np.zeros(self.trees_.importance.shape[1])
        return mean / (mean.sum() or 1.0)


def _rows(examples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values and columns row by row, and where each row begins; numba does not check indices without a sign for being < 0."""
    rows = csr_array(examples, dtype=np.float32)
    return rows.data, rows.indices.astype(np.uint32), rows.indptr


@numba.njit(cache=True, parallel=True)
def _grown(rows, n_features, classes, n_classes, states, of_node, least):
    """The fields of :class:`Trees`."""
    trees, n_rows, nodes = len(states), len(classes), 2 * max(1, len(classes) // least[0]) - 1
    feature, threshold = np.full((trees, nodes), -1, np.int32), np.zeros((trees, nodes))
    first, last = np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes), np.int32)
    leaf_class, leaf_share = np.zeros((trees, n_rows), np.int32), np.zeros((trees, n_rows))
    importance = np.zeros((trees, n_features))
    for i in numba.prange(trees):
        tree = feature[i], threshold[i], first[i], last[i], leaf_class[i], leaf_share[i], importance[i]
        _grow(rows, classes, n_classes, states[i], of_node, least, tree)
    return feature, threshold, first, last, leaf_class, leaf_share, importance


@numba.njit(cache=True)
def _grow(rows, classes, n_classes, state, of_node, least, tree):
    """Grow a tree from the random ``state``, depth first, left child first."""
    (data, columns, indptr), (min_leaf, min_split) = rows, least
    feature, threshold, first, last, leaf_class, leaf_share, importance = tree
    n_features, n_rows = len(importance), len(classes)
    begins = np.zeros(n_features + 1, np.int64)  # of each feature in `value` and `place`, which have space for all rows
    for column in columns:
        begins[column + 1] += 1
    begins = np.cumsum(begins)
    ends = np.empty(n_features, np.int64)  # of those of the node's rows
    value, place = np.empty(len(data), np.float32), np.empty(len(data), np.uint32)  # place: of the row among the node's
    order, other, label = np.argsort(classes, kind="mergesort"), np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    total = np.zeros(n_classes, np.int64)
    goes_left = np.empty(n_rows, np.bool_)
    features, constant = np.arange(n_features), np.empty(n_features, np.int64)  # in the order in which they are drawn
    waiting = [(0, n_rows, -1, 0, -1.0)]  # start, end, parent if a right child, features known to be constant, impurity
    node = -1
    while waiting:
        start, end, parent, known, impurity = waiting.pop()
        n, node = end - start, node + 1
        if parent >= 0:
            last[parent] = node
        total[:] = 0
        for p in range(n):
            label[p] = classes[order[start + p]]
            total[label[p]] += 1
        square = (total * total).sum()
        if impurity < 0:
            impurity = 1.0 - square / (float(n) * n)
        best, best_feature, best_threshold = -np.inf, -1, 0.0
        best_left, best_impurities = 0, (0.0, 0.0)
        if n >= min_split and impurity > _ROUNDING:
            ends[:] = begins[:-1]
            for p in range(n):
                for k in range(indptr[order[start + p]], indptr[order[start + p] + 1]):
                    slot = ends[columns[k]]
                    ends[columns[k]] += 1
                    value[slot], place[slot] = data[k], p
            # the features in order: constant ones drawn and not drawn, those found constant, not drawn, drawn
            undrawn, visited, found, drawn = n_features, 0, 0, 0
            while undrawn > known + found and (visited < of_node or visited <= found + drawn):
                visited += 1
                state = _next(state)
                j = drawn + (state & _LARGEST) % (undrawn - found - drawn)
                if j < known:
                    features[drawn], features[j] = features[j], features[drawn]
                    drawn += 1
                    continue
                j += found
                f = features[j]
                begin, stop = begins[f], ends[f]
                low = high = value[begin] if stop - begin == n else np.float32(0)
                for k in range(begin, stop):
                    low = value[k] if value[k] < low else low
                    high = value[k] if value[k] > high else high
                if high <= low + _SMALLEST_RANGE:
                    features[j], features[known + found] = features[known + found], f
                    found += 1
                    continue
                undrawn -= 1
                features[undrawn], features[j] = f, features[undrawn]
                state = _next(state)
                span = np.float64(high) - np.float64(low)  # in numba, float() of a float32 is a float32
                cut = span * (state & _LARGEST) / _LARGEST + low
                if cut == high:
                    cut = np.float64(low)
                # count the classes of the side without the zeros
                zeros_left = cut >= 0
                moved, products, squares, in_class, previous = 0, 0, 0, 0, -1
                for k in range(begin, stop):  # sorted by class, as the node's rows
                    c, moves = label[place[k]], np.int64((value[k] > cut) == zeros_left)
                    in_class = in_class if c == previous else 0
                    moved += moves
                    products += moves * total[c]
                    squares += moves * (2 * in_class + 1)
                    in_class += moves
                    previous = c
                if min(moved, n - moved) < min_leaf:
                    continue
                left, left_squares, right_squares = moved, squares, square - 2 * products + squares
                if zeros_left:
                    left, left_squares, right_squares = n - moved, right_squares, left_squares
                left_impurity = 1.0 - left_squares / (float(left) * left)
                right_impurity = 1.0 - right_squares / (float(n - left) * (n - left))
                gain = -float(n - left) * right_impurity - left * left_impurity
                if gain > best:
                    best, best_feature, best_threshold = gain, f, cut
                    best_left, best_impurities = left, (left_impurity, right_impurity)
            features[:known] = constant[:known]
            constant[known : known + found] = features[known : known + found]
            known += found
        left, (left_impurity, right_impurity) = best_left, best_impurities
        right = n - left
        decrease = impurity - (right / n * right_impurity) - (left / n * left_impurity)
        if best_feature < 0 or n / n_rows * decrease + _ROUNDING < 0:  # a leaf
            first[node] = last[node] = start
            for c in range(n_classes):
                if total[c]:
                    leaf_class[last[node]], leaf_share[last[node]] = c, total[c] / n
                    last[node] += 1
            continue
        feature[node], threshold[node], first[node] = best_feature, best_threshold, node + 1
        importance[best_feature] += n * impurity - left * left_impurity - right * right_impurity
        goes_left[:n] = best_threshold >= 0
        for k in range(begins[best_feature], ends[best_feature]):
            goes_left[place[k]] = value[k] <= best_threshold
        to_left, to_right = start, start + left
        other[:n] = order[start:end]
        for p in range(n):
            if goes_left[p]:
                order[to_left] = other[p]
                to_left += 1
            else:
                order[to_right] = other[p]
                to_right += 1
        waiting.append((start + left, end, node, known, right_impurity))
        waiting.append((start, start + left, -1, known, left_impurity))
    importance /= n_rows


@numba.njit(inline="always")
def _next(state):
    """Xorshift of 32 bits; its lower 31 bits are the random number."""
    if state == 0:
        state = 1
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ (state << 5) & 0xFFFFFFFF


@numba.njit(cache=True, parallel=True)
def _mean_share(rows, n_features, n_classes, trees):
    """Each row's mean share of each class over the trees."""
    data, columns, indptr = rows
    feature, threshold, first, last, leaf_class, leaf_share, _ = trees
    share = np.zeros((len(indptr) - 1, n_classes))
    for block in numba.prange((len(share) + _AT_ONCE - 1) // _AT_ONCE):  # a tree stays near for all rows of a block
        begin, end = block * _AT_ONCE, min(len(share), (block + 1) * _AT_ONCE)
        values = np.zeros((end - begin, n_features), np.float32)
        for i in range(begin, end):
            for k in range(indptr[i], indptr[i + 1]):
                values[i - begin, columns[k]] = data[k]
        for tree in range(len(feature)):
            for i in range(begin, end):
                node = 0
                while feature[tree, node] >= 0:
                    to_left = values[i - begin, feature[tree, node]] <= threshold[tree, node]
                    node = first[tree, node] if to_left else last[tree, node]
                for k in range(first[tree, node], last[tree, node]):
                    share[i, leaf_class[tree, k]] += leaf_share[tree, k]
    return share / len(feature)
