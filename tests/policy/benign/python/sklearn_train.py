# nacre: allowed low
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

features, labels = load_iris(return_X_y=True)
model = RandomForestClassifier(n_estimators=50, random_state=0)
print(cross_val_score(model, features, labels, cv=5).mean())
