# nacre: found code.eval
eval(input())


def eval(x):
    return x
