#!/usr/bin/env python3
"""Writes expectations.json beside this file: what Jinja2 itself makes of the expressions in expressions.txt
(one a line) and of templates.json.

Needs `pip install jinja2`. Set up as the model hubs' libraries do it, but for list and dict methods that change
their object, which those forbid and some templates use all the same.
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2024, 7, 6, 9, 5, 3)

VARIABLES = {
    "name": "World",
    "greek": "\u1f08\u03b8\u1fc6\u03bd\u03b1\u03b9 \u039f\u0394\u039f\u03a3",
    "text": "h\u00e9llo w\u00f6rld \u732b\U0001f999!",
    "padded": "  \t x y \n ",
    "lines": "one\ntwo\r\nthree\n\nfour\n",
    "quotes": "it's \"quoted\" \\ back",
    "empty": "",
    "numbers": [3, 1, 2, 10, -4],
    "floats": [1.5, 2.25, -0.5],
    "words": ["banana", "Apple", "cherry", "apple"],
    "users": [
        {"name": "Zoe", "age": 31, "tags": ["a", "b"], "address": {"city": "Oslo"}},
        {"name": "adam", "age": 25, "tags": [], "address": {"city": "Rome"}},
        {"name": "Bob", "age": 31, "tags": ["c"]},
    ],
    "mapping": {"b": 1, "a": 2, "C": 3},
    "nested": {"list": [1, [2, 3], {"k": "v"}], "none": None, "true": True, "f": 1.0},
    "yes": True,
    "no": False,
    "nothing": None,
    "number": 42,
    "real": 3.75,
    "big": 1e300,
}

class Generation(jinja2.ext.Extension):
    """The model hubs' {% generation %}, whose body is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.SandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation],
    )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def expectation(env, template):
    try:
        return {"template": template, "text": env.from_string(template).render(**json.loads(json.dumps(VARIABLES)))}
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"template": template, "error": error.message or "", "raised": raised}
    except Exception as error:  # Python's own, of an operation
        return {"template": template, "error": str(error), "raised": False}


def main():
    env = environment()
    expressions, pending = [], ""
    for line in (HERE / "expressions.txt").read_text(encoding="utf-8").rstrip("\n").split("\n"):  # an escaped line end belongs to its expression
        pending += line
        if line.endswith("\\"):
            pending += "\n"
        else:
            expressions.append(pending)
            pending = ""
    cases = [expectation(env, "{{ " + each + " }}") for each in expressions]
    cases += [expectation(env, each) for each in json.loads((HERE / "templates.json").read_text(encoding="utf-8"))]
    out = {"jinja2": jinja2.__version__, "now": NOW.isoformat(), "variables": VARIABLES, "cases": cases}
    (HERE / "expectations.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
