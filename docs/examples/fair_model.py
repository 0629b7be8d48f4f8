"""A fair model for people who need one: ask for a true gap and get it."""

# start
from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset

data = load_dataset("loanapp")  # 1,989 mortgage applications; protected: applicants who are not white
train, test = data.train, data.test

clf = FairAUCClassifier(metric="inter_group", max_gap=0.02, random_state=0)
clf.fit(train.features, train.label, sensitive_features=train.group)

print(clf.status_.name, "- gap on the training data:", clf.gap_)
print("AUC:", clf.auc_, "- price of fairness:", round(clf.price_, 4))
print("probabilities of approval:", clf.predict_proba(test.features)[:3, 1].round(3))
# end
