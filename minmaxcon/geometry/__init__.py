"""Geometries: distance generators on convex compact sets, and the dual generator of level-set problems."""

from minmaxcon.geometry.ball import Ball
from minmaxcon.geometry.base import DistanceGenerator, EuclideanGenerator
from minmaxcon.geometry.blocks import BallBlock, BoxBlock, InnerBlock, SimplexBlock, interval
from minmaxcon.geometry.box import Box
from minmaxcon.geometry.perspective import DualPoint, PerspectiveGenerator, entropy_weight_bound
from minmaxcon.geometry.product import EuclideanProduct, Product, product
from minmaxcon.geometry.simplex import Simplex

__all__ = [
    "Ball",
    "BallBlock",
    "Box",
    "BoxBlock",
    "DistanceGenerator",
    "DualPoint",
    "EuclideanGenerator",
    "EuclideanProduct",
    "InnerBlock",
    "PerspectiveGenerator",
    "Product",
    "Simplex",
    "SimplexBlock",
    "entropy_weight_bound",
    "interval",
    "product",
]
