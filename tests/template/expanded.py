"""The template as CloudFormation would see it: expanded by SAM's translator, with parameters put in.

What only AWS knows stays a text that can be compared, such as "Queue.Arn".
"""

import copy
import functools
import os
import pathlib
import re

from samcli.yamlhelper import yaml_parse
from samtranslator.metrics.metrics import DummyMetricsPublisher, Metrics
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "111122223333",
    "AWS::StackName": "stack",
    "AWS::StackId": "arn:aws:cloudformation:eu-central-1:111122223333:stack/stack/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
}
NOTHING = object()


def source() -> dict:
    return copy.deepcopy(_source())


@functools.cache
def _source() -> dict:
    return yaml_parse((ROOT / "template.yaml").read_text())


def refusals(parameters: dict[str, str]) -> list[str]:
    """What CloudFormation says to these parameters before it deploys anything."""
    template = source()
    texts = []
    for name, value in parameters.items():
        declared = template["Parameters"][name]
        if not fits(declared, value):
            texts.append(f"{name} {declared.get('ConstraintDescription', '')}")
    evaluate = Evaluation(template, parameters).value
    for rule in template["Rules"].values():
        if evaluate(rule.get("RuleCondition", True)):
            texts += [a["AssertDescription"] for a in rule["Assertions"] if not evaluate(a["Assert"])]
    return texts


def fits(declared: dict, value: str) -> bool:
    if "AllowedValues" in declared and value not in map(str, declared["AllowedValues"]):
        return False
    if "AllowedPattern" in declared and not re.fullmatch(declared["AllowedPattern"], value):
        return False
    if declared["Type"] == "Number":
        if not re.fullmatch(r"-?\d+", value):
            return False
        least, most = declared.get("MinValue", int(value)), declared.get("MaxValue", int(value))
        return least <= int(value) <= most
    return True


def resources(parameters: dict[str, str] | None = None) -> dict[str, dict]:
    """The resources that there are with these parameters, by logical id."""
    template = source()
    values = Evaluation(template, parameters or {})
    # As after `sam package`, without which the translator does not look at functions.
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    metrics = Metrics("lambda-inbox", DummyMetricsPublisher())
    translator = Translator({}, Parser(), metrics=metrics)
    expanded = translator.translate(template, dict(values.parameters))
    metrics.publish()
    evaluation = Evaluation(expanded, parameters or {})
    return {
        logical_id: evaluation.value(resource)
        for logical_id, resource in expanded["Resources"].items()
        if evaluation.condition(resource.get("Condition"))
    }


class Evaluation:
    def __init__(self, template: dict, parameters: dict[str, str]):
        self.template = template
        defaults = {name: str(it.get("Default", "")) for name, it in template["Parameters"].items()}
        self.parameters = defaults | parameters

    def condition(self, name: str | None) -> bool:
        return name is None or self.value(self.template["Conditions"][name])

    def value(self, node):
        if isinstance(node, list):
            return [it for it in map(self.value, node) if it is not NOTHING]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((name, argument),) = node.items()
            if name == "Ref":
                return self.ref(argument)
            if name == "Condition":
                return self.condition(argument)
            if name.startswith("Fn::"):
                return getattr(self, name.replace("Fn::", "fn_").lower())(argument)
        values = {key: self.value(value) for key, value in node.items()}
        return {key: value for key, value in values.items() if value is not NOTHING}

    def ref(self, name):
        if name == "AWS::NoValue":
            return NOTHING
        return self.parameters.get(name, PSEUDO.get(name, name))

    def fn_getatt(self, argument):
        return argument if isinstance(argument, str) else ".".join(argument)

    def fn_if(self, argument):
        condition, yes, no = argument
        return self.value(yes if self.condition(condition) else no)

    def fn_equals(self, argument):
        one, other = map(str, self.value(argument))
        return one == other

    def fn_not(self, argument):
        return not self.value(argument)[0]

    def fn_and(self, argument):
        return all(self.value(argument))

    def fn_or(self, argument):
        return any(self.value(argument))

    def fn_contains(self, argument):
        values, value = argument
        return str(self.value(value)) in map(str, self.value(values))

    def fn_findinmap(self, argument):
        name, one, other = self.value(argument)
        return self.template["Mappings"][name][str(one)][str(other)]

    def fn_select(self, argument):
        index, values = argument
        values = self.value(values)
        # A text that only AWS knows cannot be split.
        return values[int(index)] if int(index) < len(values) else f"{index} of {values}"

    def fn_split(self, argument):
        separator, text = argument
        return self.value(text).split(separator)

    def fn_sub(self, argument):
        text, values = argument if isinstance(argument, list) else (argument, {})
        values = {name: self.value(value) for name, value in values.items()}
        return re.sub(r"\$\{([^}]+)\}", lambda m: str(values.get(m[1], self.ref(m[1]))), text)

    def fn_join(self, argument):
        separator, parts = argument
        return separator.join(map(str, self.value(parts)))

    def fn_getazs(self, _):
        return ["zone-a", "zone-b"]

    def fn_cidr(self, argument):
        return [f"{argument} {n}" for n in range(2)]
