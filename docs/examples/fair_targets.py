"""Several limits: held-out AUC and gap of each, and scikit-learn's search among them, which minds the gap."""

# start
from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset

data = load_dataset("twoyear")
train, test = data.train, data.test
print("max_gap  held-out AUC              held-out gap")
for max_gap in (0.01, 0.02, 0.04, 0.08, 1.0):
    model = FairAUCClassifier("inter_group", max_gap=max_gap, random_state=0)
    model.fit(train.features, train.label, sensitive_features=train.group)
    found = model.measure(test.features, test.label, sensitive_features=test.group)
    print(f"{max_gap:<7}  {found.auc}   {found.gap}")
# end of the table

# search
import sklearn
from sklearn.model_selection import GridSearchCV

from minmaxcon_problems.fair_auc import auc_gap_scorer, best_within

sklearn.set_config(enable_metadata_routing=True)
scoring = {"auc": "roc_auc", "gap": auc_gap_scorer("inter_group")}
grid = {"max_gap": [0.01, 0.02, 0.04, 0.08]}
search = GridSearchCV(
    FairAUCClassifier("inter_group", random_state=0), grid, cv=3, scoring=scoring, refit=best_within(0.05)
)
search.fit(train.features, train.label, sensitive_features=train.group)
print("chosen:", search.best_params_)
# end
