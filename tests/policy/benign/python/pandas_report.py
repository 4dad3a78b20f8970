# nacre: allowed low
import pandas as pd

frame = pd.read_csv("sales.csv", parse_dates=["day"])
frame["total"] = frame.eval("price * quantity")
monthly = frame.groupby(frame.day.dt.to_period("M")).total.sum()
monthly.to_csv("monthly.csv")
print(monthly.describe())
print(frame.query("total > 100").head())
