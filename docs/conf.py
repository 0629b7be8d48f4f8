"""Sphinx configuration; `make docs` builds with warnings as errors and runs the doctests."""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from importlib.metadata import distribution, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))  # sphinx-gallery imports gallery_order by its name, and this file repository


def _public(index: Path) -> dict[str, list[str]]:
    """Return the public names of the modules that the API pages list, by module."""
    lines = index.read_text(encoding="utf-8").splitlines()
    modules = [line.strip() for line in lines if line.startswith("   minmaxcon")]
    return {module: list(getattr(import_module(module), "__all__", ())) for module in modules}


def _apart(public: dict[str, list[str]]) -> dict[str, str]:
    """Return other file names for functions whose pages would differ from a class's by case only."""
    found = [f"{module}.{name}" for module, names in public.items() for name in names]
    return {
        name: f"{name}-function"
        for name in found
        if name.islower() and any(name != other and name == other.lower() for other in found)
    }


def _links(public: dict[str, list[str]]) -> dict[str, str]:
    """Return the full name of every way in which the pages and the programs in them write a public name.

    ``mm.SFLS`` and ``minmaxcon.SFLS`` are the names that users write; a bare ``SFLS`` counts where one module alone
    has it.
    """
    found: dict[str, str] = {}
    counts = Counter(name for names in public.values() for name in names)
    top = set(import_module("minmaxcon").__all__)
    for module, names in public.items():
        for name in names:
            full = f"{module}.{name}"
            if name in top and module.startswith("minmaxcon."):
                found.setdefault(f"mm.{name}", full)
                found.setdefault(f"minmaxcon.{name}", full)
            if counts[name] == 1 and not name.islower():
                found[name] = full
    return found


_PUBLIC = _public(_HERE / "api" / "index.rst")
_LINKS = _links(_PUBLIC)
_METADATA = metadata("minmaxcon")

project = "minmaxcon"
author = "minmaxcon authors"
copyright = "minmaxcon authors"
release = version = _METADATA["Version"]

# No intersphinx: the build must need no network.
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinx_codeautolink",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]

# The gallery is written from the programs in gallery/, which run when the pages are built.
exclude_patterns = ["_build", "gallery"]
templates_path = ["_templates"]
nitpicky = False
numfig = True
default_role = "any"

# The API pages follow each module's __all__: adding a module is one line in api/index.rst.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_filename_map = _apart(_PUBLIC)
autodoc_typehints = "none"  # the docstrings tell the types, with shapes
autodoc_member_order = "bysource"  # what is needed first stands first
# What scikit-learn and pydantic write into their classes refers to pages of their own documentation.
_ROUTED = ("fit", "partial_fit", "score", "decision_function", "predict", "predict_proba")
_NO_PAGE = ", ".join(["model_config", "get_metadata_routing", *(f"set_{name}_request" for name in _ROUTED)])
autodoc_default_options = {"exclude-members": _NO_PAGE}
# The template of a class lists its members; numpydoc would list them once more.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

doctest_global_setup = "import numpy as np\nimport minmaxcon as mm"
doctest_test_doctest_blocks = ""

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

# MathJax 3 comes with a package, so that the built site shows mathematics without a network. Its Sphinx extension would
# stop a parallel build, and does no more than this.
_MATHJAX = Path(str(distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline")), "static")
mathjax_path = "mathjax/tex-chtml.js"
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

_ORDER = ["fair_auc", "neyman_pearson", "worst_group", "group_dro", "fair_regression", "cvar_portfolio", "group_parity"]
_ORDER += ["robust_diet", "toy", "level_set", "certificate", "divergence", "rivals", "drift"]


def gallery_order(file: str) -> int:
    """Return the place of a program in the gallery."""
    return _ORDER.index(Path(file).stem)


# In the gallery, sphinx-gallery has linked some names before sphinx-codeautolink looks for them.
suppress_warnings = ["codeautolink.match_name"]

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["problems"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "conf.gallery_order",
    "nested_sections": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "plot_gallery": "True",
    "image_srcset": ["2x"],
    "backreferences_dir": None,
    "capture_repr": (),
    "reset_modules": ("matplotlib",),
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The names in programs link too: where a program says `mm.SFLS`, the page documents `minmaxcon.solvers.SFLS`.
codeautolink_inventory_map = {name: full for name, full in _LINKS.items() if name.startswith("minmaxcon.")}
codeautolink_global_preface = "import minmaxcon as mm\nimport numpy as np"

html_theme = "pydata_sphinx_theme"
html_title = "minmaxcon"
html_static_path = ["_static", str(_MATHJAX)]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_context = {"repository": import_module("repository").repository(_HERE.parent)}
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_center": [],  # the navigation on the left has every page
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {"name": "Repository", "url": url, "icon": "fa-solid fa-code-branch"} for url in html_context.values() if url
    ],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["about"],
    "footer_end": ["sphinx-version"],
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "logo": {"text": f"minmaxcon {version}"},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"**": ["sidebar-nav"]}


def _documented(env: BuildEnvironment, written: str) -> str | None:
    full = _LINKS.get(written)
    return full if full in env.domains.python_domain.objects else None


def _reference(app: Sphinx, env: BuildEnvironment, docname: str, full: str, content: nodes.Node) -> nodes.reference:
    entry = env.domains.python_domain.objects[full]
    return make_refnode(app.builder, docname, entry.docname, entry.node_id, content, full)


class _Literals(SphinxPostTransform):
    """Links from literals that are public names, such as ``mm.SFLS`` or ``mm.solve(...)``."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            full = _documented(self.env, text.partition("(")[0])
            if full is None or isinstance(literal.parent, nodes.reference) or "\n" in text:
                continue
            link = _reference(self.app, self.env, self.env.docname, full, literal.deepcopy())
            literal.replace_self(link)


class _Wide(SphinxPostTransform):
    """Puts each picture of the gallery into a box of its own, which scrolls on a phone."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        for picture in list(self.document.findall(lambda node: type(node).__name__ == "imgsgnode")):
            box = nodes.container(classes=["scrolls"])
            picture.replace_self(box)
            box += picture


def _missing(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Node) -> nodes.reference | None:
    """Resolve a reference by the name that users write, such as :class:`minmaxcon.SFLS`."""
    full = _documented(env, node.get("reftarget", ""))
    return None if full is None else _reference(app, env, node["refdoc"], full, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the links between names."""
    app.connect("missing-reference", _missing)
    app.add_post_transform(_Literals)
    app.add_post_transform(_Wide)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
