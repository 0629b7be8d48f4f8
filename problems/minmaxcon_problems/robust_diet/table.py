"""Stigler's table of foods: what a dollar bought in August 1939."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FOODS", "NEEDS", "NUTRIENTS", "TABLE"]

NEEDS = {
    "energy": 3.0,  # Mcal a day
    "protein": 70.0,  # g
    "calcium": 0.8,  # g
    "iron": 12.0,  # mg
    "vitamin_a": 5.0,  # 1,000 IU
    "thiamine": 1.8,  # mg
    "riboflavin": 2.7,  # mg
    "niacin": 18.0,  # mg
    "vitamin_c": 75.0,  # mg
}
NUTRIENTS = tuple(NEEDS)

_DOLLAR: dict[str, tuple[float, ...]] = {
    "wheat flour, enriched": (44.7, 1411, 2.0, 365, 0, 55.4, 33.3, 441, 0),
    "corn meal": (36.0, 897, 1.7, 99, 30.9, 17.4, 7.9, 106, 0),
    "rolled oats": (25.3, 907, 5.1, 341, 0, 37.1, 8.9, 64, 0),
    "milk": (6.1, 310, 10.5, 18, 16.8, 4.0, 16.0, 7, 177),
    "evaporated milk": (8.4, 422, 15.1, 9, 26.0, 3.0, 23.5, 11, 60),
    "cheese": (7.4, 448, 16.4, 19, 28.1, 0.8, 10.3, 4, 0),
    "peanut butter": (15.7, 661, 1.0, 48, 0, 9.6, 8.1, 471, 0),
    "lard": (41.7, 0, 0, 0, 0.2, 0, 0.5, 5, 0),
    "beef liver": (2.2, 333, 0.2, 139, 169.2, 6.4, 50.8, 316, 525),
    "pork loin": (4.4, 249, 0.3, 37, 0, 18.2, 3.6, 79, 0),
    "salmon": (5.8, 705, 6.8, 45, 3.5, 1.0, 4.9, 209, 0),
    "cabbage": (2.6, 125, 4.0, 36, 7.2, 9.0, 4.5, 26, 5369),
    "onions": (5.8, 166, 3.8, 59, 16.6, 4.7, 5.9, 21, 1184),
    "potatoes": (14.3, 336, 1.8, 118, 6.7, 29.4, 7.1, 198, 2522),
    "spinach": (1.1, 106, 0, 138, 918.4, 5.7, 13.8, 33, 2755),
    "sweet potatoes": (9.6, 138, 2.7, 54, 290.7, 8.4, 5.4, 83, 1912),
    "lima beans": (17.4, 1055, 3.7, 459, 5.1, 26.9, 38.2, 93, 0),
    "navy beans": (26.9, 1691, 11.4, 792, 0, 38.4, 24.6, 217, 0),
}
FOODS = tuple(_DOLLAR)
TABLE: Any = np.array(list(_DOLLAR.values())) / np.array(list(NEEDS.values())) / 10.0
"""Contents (foods, nutrients) of a dime's worth, as shares of a day's need."""
