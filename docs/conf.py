"""Sphinx configuration; `make docs` builds with warnings as errors and runs the doctests."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path


def _apart(index: Path) -> dict[str, str]:
    """Return other file names for functions whose pages would differ from a class's by case only."""
    names = [line.strip() for line in index.read_text(encoding="utf-8").splitlines() if line.startswith("   minmaxcon")]
    found = [f"{module}.{name}" for module in names for name in getattr(import_module(module), "__all__", ())]
    return {
        name: f"{name}-function"
        for name in found
        if name.islower() and any(name != other and name == other.lower() for other in found)
    }


project = "minmaxcon"
author = "minmaxcon authors"
copyright = "minmaxcon authors"
release = version = installed_version("minmaxcon")

# No intersphinx: the build must need no network.
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]

exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = False
numfig = True
default_role = "any"

# The API pages follow each module's __all__: adding a module is one line in api/index.rst.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_filename_map = _apart(Path(__file__).with_name("api") / "index.rst")
autodoc_typehints = "none"  # the docstrings tell the types, with shapes
autodoc_member_order = "bysource"  # what is needed first stands first
# What scikit-learn and pydantic write into their classes refers to pages of their own documentation.
_NO_PAGE = "model_config, set_fit_request, set_partial_fit_request, set_score_request, get_metadata_routing"
autodoc_default_options = {"exclude-members": _NO_PAGE}
# The template of a class lists its members; numpydoc would list them once more.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

doctest_global_setup = "import numpy as np\nimport minmaxcon as mm"
doctest_test_doctest_blocks = ""

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

mathjax3_config = {
    "tex": {
        "macros": {
            "R": r"\mathbb{R}",
            "E": r"\operatorname{\mathbb{E}}",
            "argmin": r"\operatorname*{arg\,min}",
            "argmax": r"\operatorname*{arg\,max}",
            "AUC": r"\operatorname{AUC}",
            "Var": r"\operatorname{Var}",
            "KL": r"\operatorname{KL}",
            "Pr": r"\operatorname{Pr}",
        }
    }
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "minmaxcon"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "logo": {"text": "minmaxcon"},
}
html_sidebars = {"index": [], "start": [], "errata": [], "design": [], "experiments": [], "references": []}
