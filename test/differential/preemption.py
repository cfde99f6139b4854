# SPDX-License-Identifier: Apache-2.0
"""Compares preemption: which pods are evicted so that a pod of higher priority can be placed.

Both schedulers decide on a pod that may preempt; what one evicts is restored before the other's turn. They agree if both bind without
victims (then the node counts, as in referee.py), both bind with victims, or both refuse. The victims need not be the same pods, since nodes may be
equally good, but neither may be worse by kube-scheduler's own order: fewest budgets violated, then the lowest of the highest priorities, then the
smallest sum of priorities (each counted from the lowest possible, so that fewer pods sum to less). With fewer than a hundred nodes kube-scheduler
considers all of them, so it finds the best.
"""
import copy
import time

from arena import Arena, Trouble
from referee import Referee, scheduled
from world import PRIORITIES


def priority(pod):
    return PRIORITIES.get(pod["spec"].get("priorityClassName", "").removeprefix("p-"), 0)


def selects(selector, labels):
    """Budgets here have matchLabels only."""
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())


def cost(victims, objects):
    """By kube-scheduler's order, smaller is better. The most important victims use up the budgets first."""
    allowed = [[o[1], o[2]["disruptionsAllowed"]] for o in objects if o[1]["kind"] == "PodDisruptionBudget"]
    violating = 0
    for pod in sorted(victims, key=priority, reverse=True):
        hit = False
        for entry in allowed:
            budget = entry[0]
            if budget["metadata"]["namespace"] == pod["metadata"]["namespace"] and selects(budget["spec"]["selector"], pod["metadata"].get("labels", {})):
                entry[1] -= 1
                hit |= entry[1] < 0
        violating += hit
    return violating, max(map(priority, victims)), sum(priority(p) + 2**31 for p in victims)


class Settled:
    """A decision about a pod that may preempt: bound, or refused with no node nominated.

    kube-scheduler may not reach the bind: while it evicts several victims the deletions do not requeue the pod, so if the last victim does not matter to
    the filter that rejected the pod (a host port that it does not use), the pod waits for five minutes. What counts is which pods it has evicted and
    the node that it nominated, a second later.
    """

    def __init__(self, kube):
        self.polls = kube
        self.since = None

    def __call__(self, pod):
        if pod["spec"].get("nodeName"):
            return "bound", pod["spec"]["nodeName"]
        c, node = scheduled(pod), pod.get("status", {}).get("nominatedNodeName")
        if c.get("reason") == "SchedulerError":
            raise Trouble(f"kube-scheduler: {c}")
        if node and self.polls:
            self.since = self.since or time.monotonic()
            return ("bound", node) if time.monotonic() - self.since > 1.0 else None
        if c.get("status") == "False" and c.get("reason") == "Unschedulable" and not node:
            return "refused", c.get("message", "")
        return None


class PreemptionReferee(Referee):
    """A referee for pods that may preempt."""

    placed = ()  # [state, pod] that are there
    preempted = 0

    def decision(self, scheduler):
        return Settled(scheduler == Arena.KUBE)

    def names(self):
        """Pods that are placed and not terminating."""
        items = self.client.do("GET", "/api/v1/pods")["items"]
        return {(p["metadata"]["namespace"], p["metadata"]["name"]) for p in items if not p["metadata"].get("deletionTimestamp")}

    def victims(self):
        there = self.names()
        gone = [p for state, p in self.placed if state != "terminates" and (p["metadata"]["namespace"], p["metadata"]["name"]) not in there]
        return gone

    def put_back(self, victims):
        for pod in victims:
            self.remove(pod)
            self.create(pod)

    def turn(self, pod, scheduler, suffix, limit=None):
        got, detail, twin, _ = self.ask(pod, scheduler, suffix, limit)
        victims = self.victims()
        return got, detail, twin, victims

    def compare(self, pod, number):
        ours, node, twin, our_victims = self.turn(pod, Arena.OURS, f"-ours{number}")
        self.remove(twin)
        self.put_back(our_victims)
        kube, detail, twin, kube_victims = self.turn(pod, Arena.KUBE, f"-kube{number}", node if ours == "bound" and not our_victims else None)
        if ours == kube == "bound" and not our_victims and not kube_victims and node == detail:
            return None, twin, node
        self.remove(twin)
        self.put_back(kube_victims)
        return self.difference(ours, node, our_victims, kube, detail, kube_victims), None, None

    def difference(self, ours, node, our_victims, kube, detail, kube_victims):
        names = lambda pods: ", ".join(p["metadata"]["name"] for p in pods) or "nobody"
        if ours != kube:
            return f"we {ours} ({node or '-'}, evicting {names(our_victims)}), kube-scheduler {kube} ({detail}, evicting {names(kube_victims)})"
        if ours == "refused":
            return f"refused, but we evicted {names(our_victims)}, kube-scheduler {names(kube_victims)}" if our_victims or kube_victims else None
        if not our_victims and not kube_victims:
            return f"we chose {node}, kube-scheduler refuses it and takes {detail}"
        if bool(our_victims) != bool(kube_victims):
            return f"we evict {names(our_victims)} for {node}, kube-scheduler {names(kube_victims)} for {detail}"
        self.preempted += 1
        a, b = cost(our_victims, self.objects), cost(kube_victims, self.objects)
        return None if a == b else f"we evict {names(our_victims)} on {node}, cost {a}; kube-scheduler {names(kube_victims)} on {detail}, cost {b}"

    def play(self, world):
        self.objects = world["objects"]
        self.placed = copy.copy(world["placed"])
        return super().play(world)

    def stays_placed(self, item):
        self.placed.append(item)
