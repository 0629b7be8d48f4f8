"""A fair model: ask for a true gap, and measure on held-out rows what it does, beside an ordinary model."""

# start
from sklearn.linear_model import LogisticRegression

from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset

data = load_dataset("twoyear")  # 6,763 workers, to be ranked by wage; protected: women
train, test = data.train, data.test
usual = LogisticRegression(max_iter=1000).fit(train.features, train.label)
fair = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0)
fair.fit(train.features, train.label, sensitive_features=train.group)

found = fair.compare(usual, test.features, test.label, sensitive_features=test.group)
print(fair.status_.name, "- price:", round(fair.price_, 3), "of AUC on the training rows")
print("held-out gap:", found.first.gap, "was", found.second.gap)
print("held-out AUC:", found.first.auc, "was", found.second.auc)
print("difference of the gaps:", found.gap)
# end
