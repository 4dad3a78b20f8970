# nacre: found analysis.parse
def broken(:
    return
