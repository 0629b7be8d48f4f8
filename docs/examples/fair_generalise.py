"""Gaps on new rows by each way to meet a limit: eight splits of three data sets."""

# start
import warnings

import numpy as np

from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset

warnings.simplefilter("ignore")  # some fits cannot meet the target on the validation part, and warn
WAYS = {
    "training rows": {},
    "validation part": {"validation_fraction": 0.3},
    "its upper end": {"validation_fraction": 0.3, "demand": "upper"},
    "new rows": {"demand": "new_rows"},
}
print("data      target met on    training gap  held-out gap      held-out AUC")
for name in ("loanapp", "catholic", "twoyear"):
    for way, settings in WAYS.items():
        found = []
        for split in range(8):
            data = load_dataset(name, seed=split)
            train, test = data.train, data.test
            model = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0, **settings)
            model.fit(train.features, train.label, sensitive_features=train.group)
            on_train = model.measure(train.features, train.label, sensitive_features=train.group)
            on_test = model.measure(test.features, test.label, sensitive_features=test.group)
            found.append((on_train.gap.value, on_test.gap.value, on_test.auc.value))
        mean, most = np.mean(found, axis=0), np.max(found, axis=0)
        print(f"{name:8}  {way:15}  {mean[0]:.3f}         {mean[1]:.3f}, max {most[1]:.3f}  {mean[2]:.3f}")
# end
