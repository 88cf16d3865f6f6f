"""A sum over some rows of a table whose fields have commas in quotes."""

import csv
import io

GROUP = "data"


def make(workspace, draw):
    customers = draw.words(4)
    rows = [[draw.choice(customers), f"{draw.word()}, {draw.word()}", draw.randint(10, 999)] for _ in range(80)]
    rows.append([customers[1], "last, one", draw.randint(10, 999)])
    output = io.StringIO()
    csv.writer(output, lineterminator="\n").writerows([["customer", "item", "amount"], *rows])
    workspace.write("orders.csv", output.getvalue())
    return {"customer": customers[1], "sum": sum(amount for customer, _, amount in rows if customer == customers[1])}


def check(outcome):
    outcome.require_unchanged()
    outcome.require_number(outcome.values["sum"])


def solve(workspace, values):
    return f"{values['sum']}"


def spoil_sum(workspace, values):
    return f"{values['sum'] - 10}"
