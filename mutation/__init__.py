"""Would the tests notice wrong numerics? Faults put into the code one at a time, tests run on each.

``python -m mutation choose --seed 0 --count 400 > mutation/mutants.json`` draws mutants, once;
``python -m mutation run mutation/mutants.json --tree PATH --out results.json`` finds them again in
any later tree, by what they change and not by where it stands, and runs the tests that execute it;
``python -m mutation compare before.json after.json`` says which are no longer killed.
"""
