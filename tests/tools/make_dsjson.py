"""Writes decisions.dsjson: Vowpal Wabbit chooses and learns, and then reads the file.

Run it where vowpalwabbit is installed. It prints what Vowpal Wabbit says that the uniform policy
would have lost on this file, by inverse propensity scores.
"""

import json
import random
from pathlib import Path

from vowpalwabbit import Workspace

FILE = Path(__file__).with_name("decisions.dsjson")
PRICES = {"hat": 9.5, "coat": 30.0, "sock": 2.0}
CLICKS = {"noon": {"hat": 0.7, "coat": 0.2, "sock": 0.1}}
CLICKS |= {"night": {"hat": 0.1, "coat": 0.6, "sock": 0.2}}

random.seed(0)
vw = Workspace("--cb_explore_adf --epsilon 0.3 -q UA --dsjson --quiet")
with FILE.open("w") as file:
    for number in range(80):
        time = random.choice(list(CLICKS))
        names = random.sample(list(PRICES), random.choice([2, 3]))
        actions = [{"A": {"id": name, "price": PRICES[name]}} for name in names]
        context = {"U": {"time": time, "visits": number % 5}, "_multi": actions}
        event = {"Version": "1", "EventId": str(number), "c": context, "VWState": {"m": "N/A"}}
        event |= {"a": [*range(1, len(names) + 1)], "p": [1.0 / len(names)] * len(names)}
        chances = vw.predict(json.dumps(event))
        chosen = random.choices(range(len(names)), chances)[0]
        order = [chosen, *(at for at in range(len(names)) if at != chosen)]
        event |= {"a": [at + 1 for at in order], "p": [chances[at] for at in order]}
        clicked = random.random() < CLICKS[time][names[chosen]]
        label = {"_label_cost": -float(clicked), "_label_probability": chances[chosen]}
        event = label | {"_label_Action": chosen + 1, "_labelIndex": chosen} | event
        vw.learn(json.dumps(event))
        file.write(json.dumps(event) + "\n")

reader = Workspace(f"--cb_explore_adf --epsilon 1.0 --dsjson --quiet -t -d {FILE}")
print(reader.get_sum_loss() / reader.get_weighted_examples())
