#!/usr/bin/env bash
# Breaks Plan by hand, one fault at a time, in a copy of the tree, and wants its
# tests to fall each time. A fault that no test sees is printed, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
go=$(hack/go.sh)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./bin --exclude=./.git --exclude=./.cache . | tar -x -C "$copy"
plan=controller/container/plan.go

# name | text in plan.go | what stands there instead
faults='a restart does not end the old run|return c.Status.ObservedRun != c.Spec.RunGeneration|return false
what was asked to end counts as wanted|c.Status.Phase == v1.Stopping|false
what began from an older spec goes on|!c.Status.Phase.Active() \&\& server.SpecHash != c.Spec.SpecHash()|false
a run that somebody else began is not told|case c.Status.Phase == v1.Running \&\& sameRun(c, o.Server):|case c.Status.Phase == v1.Running:
a start that was noted counts as done|case c.Status.Phase == v1.Starting \&\& startIsPending(c, o.Server):|case false:
a run that ended for good is started again|case c.Status.NextRetryAt == nil:|case false:
the backoff is not waited for|case o.Now.Before(\*c.Status.NextRetryAt) \&\& !vanished(c, o.Server) \&\& !clockWentBack(c, o):|case false:
a kill waits for the grace|case c.Spec.KillGeneration > 0 \&\& c.Status.ObservedRun <= c.Spec.KillGeneration:|case false:
a deaf container is never killed|case o.StopFor >= stopTimeout(c.Spec):|case false:
a grace period is over before its signal is sent|case !c.Status.StopSent:|case false:
an installation is never over|case o.InstallFor >= installTimeout(c.Spec):|case false:
exit code 0 is a failure|case !o.Install.Running \&\& o.Install.ExitCode == 0:|case false:
pressure ends a run at once|o.PressureFor < pressureGrace|false
an exit is recorded while the engine may be about to end|case c.Status.Phase.Active() \&\& causeMatters(c, o) \&\& !o.Confirmed:|case false:
an installation is judged while the engine may be about to end|case !o.Install.Running \&\& !o.Confirmed:|case false:
an installer that the engine ended is judged|func interrupted(c v1.Container, o Observed) bool { return lost(c, o, o.InstallLost) }|func interrupted(v1.Container, Observed) bool { return false }
an engine that restarted while berth was away ended nothing|away = c.Status.Engine != o.Engine|away = false
the same engine counts as another|if c.Status.Engine != "" \&\& o.Engine != "" {|if false {
an engine that kept what runs is not recorded|case c.Status.Phase.Active() \&\& otherEngine(c, o):|case false:
the server runs on during an installation|case o.Server.Running \&\& c.Status.Phase == v1.Installing:|case false:
an old installer counts as the new one|case exists(o.Install) \&\& o.Install.SpecHash != c.Spec.InstallHash():|case false:
a failed installation is started|case c.Status.InstallFailed:|case false:
a container of an old spec is started|case o.Server.SpecHash != c.Spec.SpecHash():|case false:
running is told before the pattern matched|case o.Matched:|case true:
an installer that is left over stays|case c.Status.InstallID != "":|case false:
an end for want of memory that is told late is not noted|case oomReportedLate(c, o.Server):|case false:
a signal is sent to what is frozen|case o.Server.Paused, o.Install.Paused:|case false:
the record goes before the container|case o.Server.Running:|case false:
a missing image is not pulled|case o.Missing != "":|case false:
ready is told with a server of an old spec|if exists(o.Server) \&\& o.Server.SpecHash != c.Spec.SpecHash() {|if false {'

missed=0 tried=0
while IFS='|' read -r name from to; do
	grep -q "$(printf '%s' "$from" | sed 's/\\&/\&/g')" $plan || { echo "no such text in Plan any more: $name"; missed=$((missed + 1)); continue; }
	sed "s|$from|$to|" $plan >"$copy/$plan"
	tried=$((tried + 1))
	if (cd "$copy" && "$go" test -vet=off -failfast ./controller/container) >"$copy/out" 2>&1; then
		echo "NOT SEEN  $name"
		missed=$((missed + 1))
	else
		echo "seen      $name: $(grep -m1 -oE '^ *--- FAIL: [^ ]+' "$copy/out" | sed 's/.*FAIL: //' || true)"
	fi
	cp $plan "$copy/$plan"
done <<<"$faults"
echo "$tried faults, $missed missed"
[ $missed = 0 ]
