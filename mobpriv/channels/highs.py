def solve(program, gap, watch=None):
    raise NotImplementedError


def least_largest(cost):
    raise NotImplementedError
