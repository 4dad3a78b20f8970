# nacre: found code.hidden-name code.eval
ｅｖａｌ("1+1")
