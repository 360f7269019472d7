"""What the template must hold, whatever its parameters are."""

import itertools
import json
import pathlib
import re
import sys
import unittest

# It comes with SAM; Python has its own since 3.11.
import tomlkit

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from expanded import PSEUDO, ROOT, refusals, resources, source  # noqa: E402

DAY = 86_400
RDS = {
    "DatabaseHost": "db.abc.eu-central-1.rds.amazonaws.com",
    "DatabaseResourceId": "db-ABCDEFGHIJKL",
    "DatabaseSecurityGroupId": "sg-0123456789abcdef0",
    "OwnerSecretArn": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:owner-AbCdEf",
    "VpcId": "vpc-0123456789abcdef0",
    "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
}
KEY = "arn:aws:kms:eu-central-1:111122223333:key/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
FUNCTIONS = ("ConsumerFunction", "PruneFunction", "MigrateFunction")
# Everything that changes which resources there are.
STACKS = {
    "new database": {},
    "new database, FIFO": {"QueueType": "fifo"},
    "new database in a network that exists": {name: RDS[name] for name in ("VpcId", "SubnetIds")},
    "new database with a proxy": {"DatabaseProxy": "true", "DatabaseMultiAz": "true"},
    "database that exists": RDS,
    "database that exists, FIFO": RDS | {"QueueType": "fifo"},
    "database that exists, its secret under a key of one's own": RDS | {"OwnerSecretKeyArn": KEY},
    "database outside of RDS": {"DatabaseUrl": "postgres://u:p@db.example:5432/inbox"},
}


def of_type(found, kind):
    return {name: it["Properties"] for name, it in found.items() if it["Type"] == kind}


def manifest(path):
    return tomlkit.parse(path.read_text()).unwrap()


def statements(found):
    """Every statement of every role, with the role's logical id."""
    for name, role in of_type(found, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement


def variables(found, function):
    return found[function]["Properties"]["Environment"]["Variables"]


def referred(node):
    """The logical ids of all that this part of the source refers to."""
    if isinstance(node, dict):
        for name, argument in node.items():
            if name == "Ref":
                yield argument
            elif name == "Fn::GetAtt":
                yield argument.split(".")[0] if isinstance(argument, str) else argument[0]
            else:
                yield from referred(argument)
    elif isinstance(node, list):
        for it in node:
            yield from referred(it)


def listed(value):
    return value if isinstance(value, list) else [value]


def on_every_stack(test):
    """Runs the test for each of STACKS."""

    def run(self):
        for name, parameters in STACKS.items():
            with self.subTest(name):
                self.assertEqual(refusals(parameters), [])
                test(self, parameters, resources(parameters))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


class EveryStack(unittest.TestCase):
    @on_every_stack
    def test_the_mapping_reports_batch_item_failures(self, parameters, found):
        """A-01: without it Lambda ignores the response and deletes what failed."""
        mappings = of_type(found, "AWS::Lambda::EventSourceMapping")
        self.assertEqual(list(mappings), ["ConsumerFunctionMessages"])
        for mapping in mappings.values():
            self.assertEqual(mapping["FunctionResponseTypes"], ["ReportBatchItemFailures"])
            self.assertNotIn("FilterCriteria", mapping)

    @on_every_stack
    def test_a_message_is_handed_out_often_enough_and_then_kept(self, parameters, found):
        """A-09, and B-15 as far as a template shows it."""
        queues = of_type(found, "AWS::SQS::Queue")
        self.assertEqual(len(queues), 2)
        for queue in queues.values():
            policy = queue.get("RedrivePolicy")
            if policy:
                self.assertGreaterEqual(int(policy["maxReceiveCount"]), 5)
                dead = policy["deadLetterTargetArn"].removesuffix(".Arn")
                self.assertEqual(queues[dead]["MessageRetentionPeriod"], 14 * DAY)
                self.assertEqual(queue.get("FifoQueue"), queues[dead].get("FifoQueue"))

    @on_every_stack
    def test_concurrency_is_bounded_by_the_mapping_and_nothing_is_reserved(self, parameters, found):
        """A-09 and G-12: reserved concurrency throttles polls, which use receives up."""
        for function in of_type(found, "AWS::Lambda::Function").values():
            self.assertNotIn("ReservedConcurrentExecutions", function)
        mapping = found["ConsumerFunctionMessages"]["Properties"]
        self.assertGreaterEqual(int(mapping["ScalingConfig"]["MaximumConcurrency"]), 2)

    @on_every_stack
    def test_keys_outlive_every_message(self, parameters, found):
        """B-15: a FIFO queue's clock starts over on the move to the dead-letter queue."""
        fifo = parameters.get("QueueType") == "fifo"
        queue = found["FifoQueue" if fifo else "Queue"]["Properties"]["MessageRetentionPeriod"]
        dead = found["FifoDeadLetterQueue" if fifo else "DeadLetterQueue"]["Properties"]
        dead = dead["MessageRetentionPeriod"]
        comes_back = queue + dead if fifo else max(queue, dead)
        variables = found["PruneFunction"]["Properties"]["Environment"]["Variables"]
        days = {name: int(variables[name].removesuffix("d")) * DAY for name in (
            "LAMBDA_INBOX_RETENTION", "LAMBDA_INBOX_QUEUE_RETENTION")}
        self.assertEqual(days["LAMBDA_INBOX_QUEUE_RETENTION"], comes_back)
        self.assertGreaterEqual(days["LAMBDA_INBOX_RETENTION"], comes_back)

    @on_every_stack
    def test_every_star_has_a_reason_and_no_action_has_one(self, parameters, found):
        for role, statement in statements(found):
            reasons = found[role].get("Metadata", {}).get("Wildcards", {})
            for action in listed(statement["Action"]):
                self.assertNotIn("*", action, role)
            starred = [it for it in listed(statement["Resource"]) if "*" in str(it)]
            if starred:
                policy = "logs" if "logs:" in str(statement["Action"]) else "network"
                self.assertTrue(reasons.get(policy), f"{role}: no reason for {starred}")

    @on_every_stack
    def test_each_function_has_a_role_of_its_own_with_what_it_needs_and_no_more(self, parameters, found):
        need = {
            "ConsumerRole": {"logs", "sqs", "rds-db", "ec2"},
            "PruneRole": {"logs", "rds-db", "ec2"},
            "MigrateRole": {"logs", "secretsmanager", "ec2"},
        }
        functions = of_type(found, "AWS::Lambda::Function")
        roles = {name: function["Role"] for name, function in functions.items()}
        self.assertEqual(
            roles,
            {f"{name}Function": f"{name}Role.Arn" for name in ("Consumer", "Prune", "Migrate")},
        )
        for role, services in need.items():
            if "DatabaseUrl" in parameters:
                services = services - {"rds-db", "secretsmanager", "ec2"}
            if "OwnerSecretKeyArn" in parameters and role == "MigrateRole":
                services = services | {"kms"}
            allowed = {
                action.partition(":")[0]
                for name, statement in statements(found)
                if name == role and statement["Effect"] == "Allow"
                for action in listed(statement["Action"])
            }
            self.assertEqual(allowed, services, role)
            self.assertNotIn("ManagedPolicyArns", found[role]["Properties"])

    @on_every_stack
    def test_a_function_may_connect_as_its_own_database_user_only(self, parameters, found):
        for role, user in (("ConsumerRole", "consumer"), ("PruneRole", "prune")):
            connects = [s for name, s in statements(found) if name == role and s["Action"] == "rds-db:connect"]
            self.assertEqual(len(connects), 0 if "DatabaseUrl" in parameters else 1)
            function = found[role.replace("Role", "Function")]["Properties"]
            for statement in connects:
                self.assertTrue(statement["Resource"].endswith(f"/lambda_inbox_{user}"))
                variables = function["Environment"]["Variables"]
                self.assertEqual(variables["LAMBDA_INBOX_DB_USER"], f"lambda_inbox_{user}")
                self.assertEqual(variables["LAMBDA_INBOX_DB_AUTH"], "iam")

    @on_every_stack
    def test_the_migration_may_decrypt_its_secret_under_the_key_that_is_given_and_no_other(self, parameters, found):
        keys = [(name, s["Action"], s["Resource"]) for name, s in statements(found) if "kms:" in str(s["Action"])]
        given = [("MigrateRole", "kms:Decrypt", KEY)] if "OwnerSecretKeyArn" in parameters else []
        self.assertEqual(keys, given)

    @on_every_stack
    def test_the_functions_code_is_denied_what_only_lambda_needs(self, parameters, found):
        for function in of_type(found, "AWS::Lambda::Function").values():
            if "VpcConfig" not in function:
                continue
            role = function["Role"].removesuffix(".Arn")
            of_role = [s for name, s in statements(found) if name == role and "ec2" in str(s["Action"])]
            self.assertEqual({s["Effect"] for s in of_role}, {"Allow", "Deny"})
            denied = next(s for s in of_role if s["Effect"] == "Deny")
            self.assertEqual(denied["Condition"], {"Null": {"lambda:SourceFunctionArn": "false"}})

    @on_every_stack
    def test_the_database_is_private_encrypted_and_not_deleted_by_mistake(self, parameters, found):
        for name, database in of_type(found, "AWS::RDS::DBInstance").items():
            self.assertIs(database["PubliclyAccessible"], False)
            self.assertIs(database["StorageEncrypted"], True)
            self.assertIs(database["DeletionProtection"], True)
            self.assertIs(database["EnableIAMDatabaseAuthentication"], True)
            self.assertIs(database["ManageMasterUserPassword"], True)
            self.assertNotIn("MasterUserPassword", database)
            for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
                self.assertEqual(found[name][policy], "Snapshot")

    @on_every_stack
    def test_nothing_comes_in_from_an_address(self, parameters, found):
        """The database and the endpoint are reached from security groups, never from a block."""
        for group in of_type(found, "AWS::EC2::SecurityGroup").values():
            self.assertNotIn("SecurityGroupIngress", group)
        for rule in of_type(found, "AWS::EC2::SecurityGroupIngress").values():
            self.assertIn("SourceSecurityGroupId", rule)
            self.assertFalse({"CidrIp", "CidrIpv6"} & set(rule))
        self.assertEqual(of_type(found, "AWS::EC2::InternetGateway"), {})

    @on_every_stack
    def test_whoever_may_reach_a_group_is_let_in_there(self, parameters, found):
        """G-05: a rule on one side alone is a function that times out."""
        out = {
            (rule["GroupId"], rule["DestinationSecurityGroupId"], str(rule["FromPort"]))
            for rule in of_type(found, "AWS::EC2::SecurityGroupEgress").values()
            if "DestinationSecurityGroupId" in rule
        }
        into = {
            (rule["SourceSecurityGroupId"], rule["GroupId"], str(rule["FromPort"]))
            for rule in of_type(found, "AWS::EC2::SecurityGroupIngress").values()
        }
        self.assertEqual(out, into)
        if "DatabaseUrl" not in parameters:
            reach = {source for source, _, _ in out}
            groups = ("Consumer", "Prune", "Migrate", "Rotation")
            self.assertLessEqual({f"{name}SecurityGroup" for name in groups}, reach)

    @on_every_stack
    def test_rotation_and_migration_reach_secrets_manager(self, parameters, found):
        for name in ("Migrate", "Rotation"):
            ways = [
                rule.get("DestinationSecurityGroupId", rule.get("CidrIp"))
                for rule in of_type(found, "AWS::EC2::SecurityGroupEgress").values()
                if rule["GroupId"] == f"{name}SecurityGroup" and rule["FromPort"] == 443
            ]
            if "DatabaseUrl" in parameters:
                self.assertEqual(ways, [])
            else:
                self.assertIn("0.0.0.0/0" if "VpcId" in parameters else "EndpointSecurityGroup", ways, name)

    @on_every_stack
    def test_a_second_stack_in_the_account_has_names_of_its_own(self, parameters, found):
        schedules = of_type(found, "AWS::Scheduler::Schedule")
        self.assertEqual(len(schedules), 1)
        for schedule in schedules.values():
            self.assertNotIn("Name", schedule)
        for proxy in of_type(found, "AWS::RDS::DBProxy").values():
            # RDS's rule; the stack's own name may break it.
            self.assertRegex(proxy["DBProxyName"], r"^(?=.{1,63}$)[a-zA-Z](-?[a-zA-Z0-9]+)*$")
            self.assertTrue(proxy["DBProxyName"].endswith(PSEUDO["AWS::StackId"].rpartition("/")[2]))

    def test_the_consumer_comes_to_the_proxy_when_it_can_serve(self):
        host = source()["Resources"]["ConsumerFunction"]["Properties"]["Environment"]["Variables"]["LAMBDA_INBOX_DB_HOST"]
        condition, through_proxy, _ = host["Fn::If"]
        self.assertEqual(condition, "CreateProxy")
        with_proxy = resources({"DatabaseProxy": "true"})
        ways = {
            name
            for kind in ("AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress", "AWS::RDS::DBProxyTargetGroup")
            for name in of_type(with_proxy, kind)
            if name not in resources()
        }
        self.assertEqual(set(referred(through_proxy)), ways | {"Proxy"})
        self.assertEqual(len(ways), 5)
        self.assertEqual(variables(with_proxy, "ConsumerFunction")["LAMBDA_INBOX_DB_HOST"], "Proxy.Endpoint")

    @on_every_stack
    def test_the_functions_have_the_same_schema(self, parameters, found):
        for schema in (None, "other"):
            if schema:
                found = resources(parameters | {"InboxSchema": schema})
            schemas = {variables(found, function)["LAMBDA_INBOX_SCHEMA"] for function in FUNCTIONS}
            self.assertEqual(schemas, {schema or "lambda_inbox"})

    def test_the_migration_runs_again_for_another_database(self):
        """CloudFormation calls a custom resource again when its properties change, and not otherwise."""

        def database(parameters):
            return resources(parameters)["Tables"]["Properties"]["Database"]

        other = {
            "DatabaseName": "other",
            "DatabaseHost": "other.abc.eu-central-1.rds.amazonaws.com",
            "DatabasePort": "5433",
            "DatabaseResourceId": "db-OTHER",
            "InboxSchema": "other",
        }
        for name, value in other.items():
            with self.subTest(name):
                self.assertNotEqual(database(RDS), database(RDS | {name: value}))
        self.assertNotEqual(database({}), database({"DatabaseName": "other"}))
        self.assertIn("Database.DbiResourceId", database({}))
        self.assertNotIn("u:p", json.dumps(resources(STACKS["database outside of RDS"])["Tables"]))

    @on_every_stack
    def test_the_migration_knows_whether_the_consumer_comes_through_a_proxy(self, parameters, found):
        pooled = "on" if "DatabaseProxy" in parameters else "off"
        self.assertEqual(found["Tables"]["Properties"]["Pooled"], pooled)
        self.assertEqual(variables(found, "MigrateFunction")["LAMBDA_INBOX_CONSUMER_POOLED"], pooled)
        self.assertEqual(variables(found, "ConsumerFunction")["LAMBDA_INBOX_DB_POOLED"], pooled)

    @on_every_stack
    def test_the_consumer_comes_after_the_tables(self, parameters, found):
        for function in ("ConsumerFunction", "PruneFunction"):
            self.assertIn("Tables", listed(found[function].get("DependsOn", [])))
        tables = found["Tables"]["Properties"]
        self.assertEqual(tables["ServiceToken"], "MigrateFunction.Arn")
        for way in of_type(found, "AWS::EC2::SecurityGroupEgress"):
            if way.startswith("MigrateTo"):
                self.assertIn(way, tables["After"])

    @on_every_stack
    def test_alarms_look_at_what_moves(self, parameters, found):
        """A-16: NumberOfMessagesSent of a dead-letter queue stays at zero."""
        alarms = of_type(found, "AWS::CloudWatch::Alarm")
        self.assertNotIn("NumberOfMessagesSent", json.dumps(alarms))
        queues = {queue for queue in of_type(found, "AWS::SQS::Queue")}
        looked_at = {
            (dimension["Value"].removesuffix(".QueueName"), alarm["MetricName"])
            for alarm in alarms.values()
            for dimension in alarm.get("Dimensions", [])
            if dimension["Name"] == "QueueName"
        }
        prefix = "Fifo" if parameters.get("QueueType") == "fifo" else ""
        self.assertEqual(
            looked_at,
            {
                (f"{prefix}Queue", "ApproximateAgeOfOldestMessage"),
                (f"{prefix}DeadLetterQueue", "ApproximateNumberOfMessagesVisible"),
            },
        )
        self.assertEqual({name for name, _ in looked_at}, queues)
        self.assertEqual(alarms["PruneNotFinishedAlarm"]["TreatMissingData"], "breaching")

    def test_the_alarm_on_errors_sees_a_message_that_fails_alone(self):
        """It comes back after the visibility timeout, so that most minutes have no error."""
        found = resources()
        alarm = found["ConsumerErrorsAlarm"]["Properties"]
        errors = range(0, alarm["Period"] * alarm["EvaluationPeriods"], found["Queue"]["Properties"]["VisibilityTimeout"])
        periods = {second // alarm["Period"] for second in errors}
        self.assertGreaterEqual(len(periods), alarm["DatapointsToAlarm"])

    def test_no_alarm_waits_for_longer_than_the_queue_keeps_messages(self):
        longest = source()["Parameters"]["OldestMessageSeconds"]["MaxValue"]
        for queue in ("Queue", "FifoQueue"):
            keeps = source()["Resources"][queue]["Properties"]["MessageRetentionPeriod"]
            self.assertLessEqual(longest, keeps - DAY)

    def test_alarms_reach_the_topic_where_there_is_one(self):
        topic = "arn:aws:sns:eu-central-1:111122223333:alarms"
        for alarm in of_type(resources({"AlarmTopicArn": topic}), "AWS::CloudWatch::Alarm").values():
            self.assertEqual(alarm["AlarmActions"], [topic])
        for alarm in of_type(resources(), "AWS::CloudWatch::Alarm").values():
            self.assertNotIn("AlarmActions", alarm)

    def test_every_metric_that_is_shown_or_watched_is_counted_somewhere(self):
        counted = set()
        for path in ROOT.glob("crates/*/src/metrics.rs"):
            counted |= set(re.findall(r'"((?:lambda_inbox|messaging)\.[a-z_.]+)"', path.read_text()))
        used = set(re.findall(r"\b((?:lambda_inbox|messaging)\.[a-z_]+\.[a-z_]+)\b", (ROOT / "template.yaml").read_text()))
        self.assertLessEqual(used, counted)
        self.assertIn("lambda_inbox.inbox.failed", used)

    @on_every_stack
    def test_the_dashboard_is_json(self, parameters, found):
        body = found["Dashboard"]["Properties"]["DashboardBody"]
        self.assertGreater(len(json.loads(body)["widgets"]), 5)

    def test_alarms_and_dashboard_look_at_this_stacks_functions_alone(self):
        """Two stacks in one account count under the same names."""
        found = resources()
        alarms = of_type(found, "AWS::CloudWatch::Alarm").values()
        ours = [alarm["Dimensions"] for alarm in alarms if alarm["Namespace"] == "lambda-inbox"]
        self.assertEqual(len(ours), 6)
        for dimensions in ours:
            self.assertIn("function_name", [dimension["Name"] for dimension in dimensions])
        body = json.loads(found["Dashboard"]["Properties"]["DashboardBody"])
        shown = [metric for widget in body["widgets"] for metric in widget["properties"]["metrics"] if metric[0] == "lambda-inbox"]
        self.assertGreater(len(shown), 10)
        for metric in shown:
            self.assertEqual(metric[2], "function_name")

    def test_logical_ids_are_the_ones_that_were_deployed_before(self):
        """G-04: a renamed id makes a second resource beside the first. Add new ones to the file; never
        take one out without a word in the upgrade notes."""
        known = (pathlib.Path(__file__).parent / "logical_ids.txt").read_text().split()
        found = set()
        for parameters in STACKS.values():
            found |= set(resources(parameters))
        self.assertEqual(sorted(found), known)

    def test_the_functions_log_in_as_the_roles_that_the_migration_makes(self):
        found = resources()
        variables = {
            name: found[name]["Properties"]["Environment"]["Variables"]
            for name in ("ConsumerFunction", "PruneFunction", "MigrateFunction")
        }
        made = variables["MigrateFunction"]
        self.assertEqual(made["LAMBDA_INBOX_CONSUMER_ROLES"], variables["ConsumerFunction"]["LAMBDA_INBOX_DB_USER"])
        self.assertEqual(made["LAMBDA_INBOX_PRUNE_ROLE"], variables["PruneFunction"]["LAMBDA_INBOX_DB_USER"])
        scripts = ROOT / "crates" / "lambda-inbox-store" / "roles"
        for name, script in (("CONSUMER_ROLES", "consumer.sql"), ("PRUNE_ROLE", "prune.sql")):
            self.assertIn(f'CREATE ROLE "{made[f"LAMBDA_INBOX_{name}"]}"', (scripts / script).read_text())

    def test_a_build_by_sam_has_the_features_and_unwinds_on_a_panic(self):
        """SAM hands cargo-lambda a binary's name and nothing else, and cargo-lambda aborts where a profile says nothing."""
        workspace = manifest(ROOT / "Cargo.toml")
        self.assertEqual(workspace["profile"]["release"]["panic"], "unwind")
        packages = {
            binary["name"]: manifest(path)["package"]
            for path in ROOT.glob("*/*/Cargo.toml")
            for binary in [{"name": path.parent.name}, *manifest(path).get("bin", [])]
        }
        built = [it["Metadata"]["BuildProperties"] for it in source()["Resources"].values() if "CodeUri" in it.get("Properties", {})]
        self.assertEqual(len(built), 3)
        for properties in built:
            with self.subTest(**properties):
                self.assertEqual(list(properties), ["Binary"])
                package = packages[properties["Binary"]]
                build = package["metadata"]["lambda"]["build"]
                self.assertEqual(build, {"packages": [package["name"]], "all_features": True})

    def test_the_schema_version_is_that_of_the_last_migration(self):
        numbers = [int(path.name[:4]) for path in (ROOT / "migrations").glob("*.sql")]
        self.assertEqual(source()["Resources"]["Tables"]["Properties"]["SchemaVersion"], max(numbers))


class Deploying(unittest.TestCase):
    def test_no_questions_are_recommended_that_cannot_be_answered(self):
        """SAM asks for a NoEcho parameter without a default, and again for ever where the answer is empty."""
        unanswerable = [
            name for name, it in source()["Parameters"].items() if it.get("NoEcho") and it.get("Default") == ""
        ]
        self.assertEqual(unanswerable, ["DatabaseUrl"])
        for path in ("template.yaml", "README.md", "docs/guide/deploying.md"):
            self.assertEqual(re.findall(r"sam deploy[^\n`]*--guided", (ROOT / path).read_text()), [], path)

    def test_a_deployment_needs_no_arguments(self):
        deploy = manifest(ROOT / "samconfig.toml")["default"]
        has = deploy["global"]["parameters"] | deploy["deploy"]["parameters"]
        self.assertTrue(has["stack_name"])
        self.assertEqual(has["capabilities"], "CAPABILITY_IAM")
        self.assertIs(has["resolve_s3"], True)
        self.assertIs(has["confirm_changeset"], True)

    def test_no_role_has_a_name(self):
        """CAPABILITY_IAM would not be enough."""
        for parameters in STACKS.values():
            for role in of_type(resources(parameters), "AWS::IAM::Role").values():
                self.assertNotIn("RoleName", role)

    def test_another_templates_folder_has_no_configuration(self):
        """SAM looks for it beside the template, also where --config-file is relative."""
        guide = (ROOT / "docs/guide/deploying.md").read_text()
        commands = re.findall(r"sam deploy[^\n`]*--template[^\n`]*", guide)
        self.assertTrue(commands)
        for command in commands:
            self.assertIn('--config-file "$PWD/samconfig.toml"', command)


class Timeouts(unittest.TestCase):
    def test_the_visibility_timeout_is_six_times_the_functions_and_the_window(self):
        """A-10 and G-01: one parameter moves both."""
        declared = source()["Parameters"]
        timeouts = declared["FunctionTimeout"]["AllowedValues"]
        windows = declared["BatchWindow"]["AllowedValues"]
        for timeout, window, kind in itertools.product(timeouts, windows, ("standard", "fifo")):
            parameters = {"FunctionTimeout": timeout, "BatchWindow": window, "QueueType": kind}
            if kind == "fifo" and window != "0":
                self.assertTrue(refusals(parameters))
                continue
            with self.subTest(**parameters):
                found = resources(parameters)
                queue = found["FifoQueue" if kind == "fifo" else "Queue"]["Properties"]
                function = found["ConsumerFunction"]["Properties"]
                expected = 6 * int(function["Timeout"]) + int(window)
                self.assertEqual(queue["VisibilityTimeout"], expected)
                mapping = found["ConsumerFunctionMessages"]["Properties"]
                has_window = "MaximumBatchingWindowInSeconds" in mapping
                self.assertEqual(has_window, kind == "standard")


class Refusals(unittest.TestCase):
    def test_what_cannot_work_is_refused_before_anything_is_deployed_and_says_why(self):
        for parameters, text in [
            # G-12.
            ({"MaximumConcurrency": "1"}, "from 2 to 1000"),
            ({"MaximumConcurrency": "1001"}, "from 2 to 1000"),
            # G-13.
            ({"BatchSize": "100"}, "needs a BatchWindow"),
            ({"BatchSize": "11"}, "needs a BatchWindow"),
            ({"BatchSize": "10001", "BatchWindow": "5"}, "from 1 to 10000"),
            ({"QueueType": "fifo", "BatchWindow": "5"}, "no batching window"),
            ({"QueueType": "fifo", "BatchSize": "100", "BatchWindow": "5"}, "10 messages at most"),
            ({"QueueType": "fifo", "KeyRetentionDays": "14"}, "18 or more"),
            #
            ({"MaxReceiveCount": "1"}, "from 5 to 1000"),
            ({"MaxReceiveCount": "4"}, "from 5 to 1000"),
            ({"KeyRetentionDays": "7"}, "must be 14"),
            ({"FunctionTimeout": "45"}, "visibility timeout"),
            ({"Architecture": "arm"}, "Architecture"),
            ({"PruneSchedule": "rate(1 hours)"}, "singular for 1"),
            ({"PruneSchedule": "rate(2 hour)"}, "singular for 1"),
            ({"PruneSchedule": "every hour"}, "rate(1 hour)"),
            ({"PruneSchedule": "cron(0 3 * * *)"}, "six fields"),
            ({"DatabaseHost": "db.example:5432"}, "without a port"),
            ({"DatabaseVersion": "13"}, "14 to 18"),
            ({"SubnetIds": "subnet-0123456789abcdef0"}, "two or more"),
            ({"VpcId": RDS["VpcId"]}, "Set SubnetIds"),
            (RDS | {"VpcId": "", "SubnetIds": ""}, "Set VpcId"),
            (RDS | {"DatabaseResourceId": ""}, "set DatabaseResourceId"),
            (RDS | {"DatabaseSecurityGroupId": ""}, "set DatabaseSecurityGroupId"),
            (RDS | {"OwnerSecretArn": ""}, "set OwnerSecretArn"),
            (RDS | {"DatabaseProxy": "true"}, "DatabaseProxy to false"),
            (RDS | {"DatabaseUrl": "postgres://u:p@h/d"}, "both set"),
            ({"DatabaseUrl": "mysql://h/d"}, "postgres://"),
            ({"AlarmTopicArn": "alarms"}, "SNS topic"),
            ({"OldestMessageSeconds": "345600"}, "to 259200"),
            ({"DatabaseName": "_inbox"}, "begin with a lower-case letter"),
            ({"DatabasePort": "1149"}, "from 1150"),
            ({"InboxSchema": "pg_inbox"}, "not with pg_"),
            ({"InboxSchema": "1nbox"}, "beginning with no digit"),
            ({"InboxSchema": "a" * 64}, "at most 63"),
            # IAM matches the whole ARN.
            (RDS | {"OwnerSecretArn": RDS["OwnerSecretArn"].removesuffix("-AbCdEf")}, "six characters"),
            (RDS | {"OwnerSecretKeyArn": KEY.replace(":key/", ":alias/")}, "not of an alias"),
            (RDS | {"OwnerSecretKeyArn": KEY.rpartition("/")[2]}, "ARN of a KMS key"),
        ]:
            with self.subTest(**parameters):
                said = refusals(parameters)
                self.assertTrue(any(text in it for it in said), said)

    def test_every_schedule_that_eventbridge_takes_is_taken(self):
        for schedule in ("rate(1 hour)", "rate(12 hours)", "rate(1 day)", "cron(0 3 * * ? *)", "rate(30 minutes)"):
            self.assertEqual(refusals({"PruneSchedule": schedule}), [], schedule)

    def test_every_constraint_has_a_text(self):
        for name, declared in source()["Parameters"].items():
            self.assertTrue(declared.get("Description"), name)
            if {"AllowedPattern", "MinValue", "MaxValue"} & set(declared):
                self.assertTrue(declared.get("ConstraintDescription"), name)


if __name__ == "__main__":
    unittest.main()
