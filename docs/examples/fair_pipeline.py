"""From a table with words, missing cells and three groups to a fair model with held-out intervals, in one pipeline."""

# table
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
rows = 8000
people = pd.DataFrame(
    {
        "years": rng.normal(12, 3, rows),
        "score": rng.normal(50, 10, rows),
        "branch": rng.choice(["shop", "office", "plant"], rows),
        "origin": rng.choice(["north", "south", "island"], rows, p=[0.5, 0.3, 0.2]),
    }
)
bonus = 1.5 * (people.branch == "office")
hired = people.years / 3 + people.score / 10 + bonus + rng.logistic(size=rows) > 9
people["hired"] = np.where(hired, "yes", "no")
people["score"] -= 8 * (people.origin == "island")  # the test is unfair to islanders
people.loc[rng.random(rows) < 0.05, "years"] = np.nan
# end of the table

# start
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from minmaxcon_problems.fair_auc import FairAUCClassifier

sklearn.set_config(enable_metadata_routing=True)  # so that the pipeline hands sensitive_features to the model
prepare = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["years", "score"]),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["branch"]),
)
model = FairAUCClassifier("inter_group", max_gap=0.02, protected="island", random_state=0)
pipeline = make_pipeline(prepare, model)

train, test = train_test_split(people, stratify=people[["hired", "origin"]], random_state=0)
pipeline.fit(train, train.hired, sensitive_features=train.origin)

usual = make_pipeline(prepare, LogisticRegression()).fit(train, train.hired)

fair, features = pipeline[-1], pipeline[:-1].transform(test)
found = fair.compare(usual[-1], features, test.hired, sensitive_features=test.origin)
print(fair.status_.name, "on the training rows, price", round(fair.price_, 3))
print("held-out AUC:", found.first.auc, "was", found.second.auc)
print("held-out gap:", found.first.gap, "was", found.second.gap)
print(found.first.favours)
# end
