#!/usr/bin/env bash
# Breaks the code by hand, one fault at a time, in a copy of the tree. A test must
# fail each time. The script fails for a fault that no test sees, for one that does
# not compile, and for one whose text the file does not contain exactly once.
#
# hack/faults.sh [name]   tries the faults whose file or name contains the argument
set -euo pipefail
cd "$(dirname "$0")/.."
go=$(hack/go.sh)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./bin --exclude=./.git --exclude=./.cache . | tar -x -C "$copy"

# "@ file | arguments of go test" begins the faults of a file. A fault is
# "name | text of the file => its replacement".
faults() {
	cat <<'EOF'
@ controller/container/plan.go | ./controller/container
a restart does not end the old run | return c.Status.ObservedRun != c.Spec.RunGeneration => return false
a run that is being stopped counts as requested | c.Status.Phase == v1.Stopping || => false ||
a run from an older spec continues | !c.Status.Phase.Active() && server.SpecHash != c.Spec.SpecHash() => false
a restart from outside is not recorded | case c.Status.Phase == v1.Running && sameRun(c, o.Server): => case c.Status.Phase == v1.Running:
a recorded start counts as done | case c.Status.Phase == v1.Starting && startIsPending(c, o.Server): => case false:
a run is repeated against its policy | case c.Status.NextRetryAt == nil: => case false:
the backoff is not waited for | case o.Now.Before(*c.Status.NextRetryAt) && !vanished(c, o.Server) && !clockWentBack(c, o): => case false:
a kill waits for the grace period | case c.Spec.KillGeneration > 0 && c.Status.ObservedRun <= c.Spec.KillGeneration: => case false:
a container that ignores its signal is never killed | case o.StopFor >= stopLimit(c): => case false:
a container that writes on while it stops is not killed | case o.Runaway: => case false:
no image is pulled before a start | case next.Do == StartServer && refreshDue(c): => case false:
a moved tag replaces no container | case next.Do == StartServer && o.Server.ContainerID == c.Status.OutdatedID: => case false:
the grace period is over before the signal is sent | case !c.Status.StopSent: => case false:
an installation has no timeout | case installLeft(c, o) <= 0: => case false:
an installer with exit code 0 is not finished | case !o.Install.Running && o.Install.ExitCode == 0: => case false:
disk pressure stops a run at once | o.Server.Running && o.PressureFor < pressureLimit(c) => false
an exit is recorded while the engine may be shutting down | case c.Status.Phase.Active() && causeMatters(c, o) && !o.Confirmed: => case false:
an installation finishes while the engine may be shutting down | case !o.Install.Running && !o.Confirmed: => case false:
an installer that the engine stopped has a result | func interrupted(c v1.Container, o Observed) bool { return lost(c, o, o.InstallLost) } => func interrupted(v1.Container, Observed) bool { return false }
an engine that restarted while berth was away stopped nothing | away = c.Status.Engine != o.Engine => away = false
the same engine counts as another | if c.Status.Engine != "" && o.Engine != "" { => if false {
an engine that kept its containers is not recorded | case c.Status.Phase.Active() && otherEngine(c, o): => case false:
the server continues during an installation | case o.Server.Running && c.Status.Phase == v1.Installing: => case false:
an old installer counts as the new one | case exists(o.Install) && o.Install.SpecHash != c.Spec.InstallHash(): => case false:
a failed installation is started | case c.Status.InstallFailed:\n\t\treturn planOff(c, o) => case false:\n\t\treturn planOff(c, o)
a container of an old spec is started | case o.Server.SpecHash != c.Spec.SpecHash(): => case false:
running is recorded before the pattern matched | case o.Matched: => case true:
an old installer is not removed | case c.Status.InstallID != "": => case false:
a late out of memory is not recorded | case oomReportedLate(c, o.Server): => case false:
a paused container gets a signal | case o.Server.Paused, o.Install.Paused:\n\t\treturn do(Unpause)\n\tcase c.Status.ObservedInstall => case false:\n\t\treturn do(Unpause)\n\tcase c.Status.ObservedInstall
a record is purged before its container | case o.Server.Running:\n\t\treturn do(KillServer)\n\tcase exists(o.Server): => case false:\n\t\treturn do(KillServer)\n\tcase false:
a missing image is not pulled | case o.Missing != "": => case false:
ready is recorded with a server of an old spec | if exists(o.Server) && o.Server.SpecHash != c.Spec.SpecHash() { => if false {

@ api/server/ui.go | ./api/server -run ^TestPage
the page is compressed at the start | p.load = sync.OnceValues(d.Page) => p.load = sync.OnceValues(d.Page); _, _ = p.load()
@ controller/volume/volume.go | ./controller/volume -run ^TestUnchangedVolumeIsNotUpdated
a volume on which nothing has changed is updated | recorded(v.Status, condition, r.Directories.Used(id)) => false
a change of the usage is not recorded | s.Usage() == used && => used == used &&
@ store/event.go | ./store -run ^(TestTransitions|TestReadTransitions|TestTrim|TestEvents|TestEpoch)
a reader skips transitions that were removed | if since+1 < oldest || since > newest { => if since > newest {
a number of another store is accepted | if since+1 < oldest || since > newest { => if since+1 < oldest {
@ store/event_index.go | ./store -run ^TestEventsOf
transitions of many containers come in the order of containers | cmp.Compare(a.ahead[0], b.ahead[0]) => cmp.Compare(a.container, b.container)
only the seqs that were read ahead are found | drained(first) && !first.last => false
@ store/index.go | ./controller/backup ./controller/download ./api/server -run ^TestDamaged
a damaged object hides the others of its volume or backup | if errors.Is(err, ErrDamaged) { => if false {
@ api/server/events.go | ./api/server -run ^(TestFewVisibleEvents|TestEventsOfRestrictedToken|TestScansAreLimited)
a limited token reads the transitions of all | if caller.Restricted() { => if false {
a filter by type reads without a limit | if c.Query("type") == "" && !caller.Restricted() { => if true {
a limited token does not receive those of its volumes | names = append(names, store.OfVolume(o.Spec.VolumeID)) => _ = o
@ store/collection_write.go | ./store -run ^(TestCollection|TestUpdate|TestSpecIndex|TestStatusIndex|TestReadsReturn)
a spec changes without a new generation | r.Meta.Generation++ => r.Meta.Generation += 0
an object is created twice | return c.wrap(id, ErrExists) => break
@ store/batch.go | ./store -run ^(TestUpdate|TestFailedUpdate|TestBatch|TestFailedCommit)
an update succeeds although its commit failed | if err != nil && o.dependsOnBatch { => if false {
@ store/kv/commit.go | ./store/kv -run ^TestCommitsAreSynced
a commit is not on the disk when it returns | err != nil || !flush { => err != nil || flush {
@ store/kv/allocate.go | ./store/kv -run ^(TestFullDisk|TestNewLogs)
a log that Badger begins gets no blocks | return l.changed.Equal => return !l.read.IsZero() || l.changed.Equal
a log of the same millisecond gets no blocks |  && l.read.Sub(l.changed) > settled => 
@ store/writer.go | ./store -run ^TestFlushLater
an upload's entry is never flushed | case s.db.Logged(): => case false:
an upload's entries are committed each time | if s.db.SyncLog() { => if false {
@ store/turns.go | ./store -run ^(TestWaitingUpdates|TestCloseRefuses)
an update that waits does not share a commit | len(t.waiting) == 0 || => true ||
a close does not wait for the commit | if t.taken { => if false {
@ store/sequence.go | ./store -run ^(TestTransitions|TestReadTransitions|TestTrim|TestEvents|TestEpoch)
two transitions have the same number | make(newest + 1) => make(max(newest, 1))
transitions that must be kept are removed | seq+keep > newest && !timeOf(entry).Before(before) => !timeOf(entry).Before(before)

@ api/v1/path.go | ./api/v1 ./runtime/volume -run ^(TestCheckPath|TestHostilePaths)$
a path may have .. | if strings.Contains(path, "..") { => if false {
a path may be absolute | path[0] == '/', => false,
@ runtime/volume/path.go | ./runtime/volume -run ^(TestHostile|TestTemporaryNames|TestRenameAndDelete|TestMkdir|TestWrite$)
a client may use temporary names | if first, _, _ := strings.Cut(p, "/"); isTemp(first) { => if false {
the root folder may be deleted | if err == nil && p == root { => if false {
@ runtime/volume/links.go | ./runtime/volume -run ^TestHostile
an archive's link may leave the volume | return p != ".." && !strings.HasPrefix(p, "../") => return p != ".." || !strings.HasPrefix(p, "../")
@ runtime/volume/walk/stack.go | ./runtime/volume/walk
any folder is taken for the parent | if err == nil && same(d, up.id) { => if err == nil {
a stack goes down into a replaced folder | if err != nil || !same(next, l.id) { => if err != nil {
@ runtime/volume/walk/dir.go | ./runtime/volume/walk
a name has several components | strings.Contains(name, "/") => strings.Contains(name, "//")
a folder is opened through a link | unix.Openat(in, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm) => unix.Openat(in, name, flags|unix.O_CLOEXEC, perm)

@ runtime/volume/snapshot/write.go | ./runtime/volume/snapshot ./runtime/volume -run ^(TestChangedFiles|TestBackupSkips|TestManyNames|TestSkippedIsBounded|TestRandomTrees)$
a file that changed is not listed | x.skip(p, v1.SkippedChanged) => _ = after
a tenant's file takes the manifest's place | case p == ManifestName: => case false:
a path is longer than any system call takes | case len(p) > maxPath: => case false:
the list of skipped entries has no bound | if len(x.result.Skipped) < v1.MaxSkipped { => if true {
hard links become files | if to := x.linked(it.Info); to != "" { => if to := ""; to != "" {
names have no bound | x.nameBytes > x.opt.NameBytes { => false {
@ runtime/volume/archiver/archiver.go | ./runtime/volume/archiver
the process has the daemon's environment | cmd.Env = []string{} => cmd.Env = nil
a cancelled backup is a fault | case ctx.Err() != nil: => case false:
the error of the target is lost | kill(err) => kill(nil)
an archive that lost its end is complete | m.Written != size => m.Written < size
an archive has two sizes | m.Result.Size != m.Written => false
a process that failed after its result has succeeded | p.exit != nil || m.Result => m.Result
the process outlives the daemon | Pdeathsig: syscall.SIGKILL, => Pdeathsig: 0,
@ runtime/volume/archiver/process.go | ./runtime/volume/archiver -timeout 60s
what the process prints has no bound | p[:min(len(p), stderrBytes-len(h.kept))] => p
the process may report any size | n < 0 || n > aheadBytes => false
a full target does not end the process | kill(err) => errors.Is(err, nil)
answers that nobody reads fill their pipe | n > 0 { // other => n >= 0 { // other
@ runtime/volume/archiver/reporter.go | ./runtime/volume/archiver
the process does not wait for the daemon | total-r.allowed > windowBytes => total < 0
@ runtime/blob/upload.go | ./runtime/blob -run ^TestS3EndsTheWriter$ -timeout 30s
an upload that fails waits for its writer | cancel(err) // nothing => _ = err // nothing
@ runtime/volume/snapshot_output.go | ./runtime/volume/archiver
the checksum lacks bytes | o.hash.Write(p) => o.hash.Write(p[1:])
the size lacks bytes | o.size += int64(n) => o.size += int64(n) / 2
@ controller/backup/archive.go | ./controller/backup -run ^(TestTargetLosesBytes|TestBackupsFull)$
a target that lost bytes has completed | size != o.Snapshot.Size => size > o.Snapshot.Size
@ controller/backup/space.go | ./controller/backup -run ^(TestDiskFull|TestBackupsFull)$
a full disk is written on | errors.Join(s.free(b.Spec.Target), s.reserve(b, n, n)) => s.reserve(b, n, n)
@ runtime/volume/archiver/main.go | ./runtime/volume/archiver
a stop of the service ends the process first | signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) => signal.Ignore(syscall.SIGHUP)
the process keeps what the daemon inherited | _ = unix.Close(fd) => _ = fd
@ runtime/volume/archiver/priority.go | ./runtime/volume/archiver
the process has the usual priority | setPolicy(fastPolicy) => _ = setPolicy
the threads of the process have the usual policy | Policy: policy, => Policy: unix.SCHED_NORMAL,
the session of the process has the usual priority | []byte(strconv.Itoa(nice)) => []byte("0")
the process reads as eagerly as the daemon | ioprioIdle     = 3 << 13 => ioprioIdle     = 0
@ runtime/volume/archiver/pace.go | ./runtime/volume/archiver
a console is not noticed | most: 0.025 => most: 2.5
the process never pauses | p.sleep(pause) => p.at += 0
it hurries as soon as the others pause | at-p.busy >= quietTime => at-p.busy >= 0
@ runtime/volume/archiver/message.go | ./runtime/volume/archiver
a refusal loses its code | case f.Code != "": => case f.Code == "none":
a full disk is not recognised | case f.Errno != 0: => case f.Errno < 0:
@ runtime/volume/snapshot/read.go | ./runtime/volume/snapshot -run ^(TestHostileArchives|TestDamagedArchives|TestBomb)$
the checksum is not compared | got != a.Checksum { => false && got == "" {
the manifest is not compared | !bytes.Equal(sum[:], x.derived.Sum(nil)) { => bytes.Equal(nil, sum[:1]) {
an archive extracts to more than it had | x.bytes > x.archive.Bytes || e.data > x.archive.Bytes { => false {
an archive extracts to less than it had | if x.bytes != x.archive.Bytes { => if false {
the root folder need not come first | if first != (e.path == rootPath) { => if false {
a member may follow the manifest | if err == nil {\n\t\treturn damaged("it has a member after its manifest") => if false {\n\t\treturn damaged("it has a member after its manifest")
@ runtime/volume/snapshot/headerread.go | ./runtime/volume/snapshot -run ^(TestHostileArchives|TestDamagedArchives|TestForeignArchives)$
headers of other programs are accepted | if !bytes.Equal(h.made, h.raw) { => if false {
@ runtime/volume/snapshot/entry.go | ./runtime/volume/snapshot -run ^TestHostileArchives$
a member may be above the root | p != ".." && !strings.HasPrefix(p, "../") => true
a member may be absolute | && p[0] != '/' => && true
@ runtime/volume/snapshot/extract.go | ./runtime/volume/snapshot ./runtime/volume -run ^(TestHostileArchives|TestRandomTrees|TestRestoreReplace)$
an entry need not be in a folder before it | if t.path == rootPath {\n\t\t\treturn nil, "", damaged => if false {\n\t\t\treturn nil, "", damaged
a hard link may lead to a link | err == nil && !info.Mode().IsRegular() { => err == nil && info == nil {
the mode is set before the owner | return os.NewSyscallError("fchmod", unix.Fchmod(fd, a.mode)) => return nil
a folder keeps the time of its last entry | return t.at.Dir().Chtimes(name, a.time) => return t.at.Dir().Chtimes(name, time.Now())
@ runtime/volume/snapshot/sparse.go | ./runtime/volume/snapshot -run ^(TestHostileArchives|TestRandomTrees|TestHolesCostNothing)$
the end of a map is not checked | if end != e.size || => if
extents may overlap | if p.off < end || => if
@ runtime/volume/snapshot/merge.go | ./runtime/volume -run ^(TestRestoreMerge|TestRestoreHardLimit)$
a merge keeps the volume's entry | case !it.Info.IsDir():\n\t\treturn nil => case !it.Info.IsDir():\n\t\treturn m.addOld(it)
a merge copies what it can link | if m.link { => if false {
@ runtime/volume/quota/quota.go | ./runtime/volume/quota ./runtime/volume -run ^(TestSumsDoNotOverflow|TestInPlaceHugeOffset)$
a sum of sizes overflows | if n > limit-q.used-q.reserved { => if q.used+q.reserved+n > limit {
reservations without a limit overflow | limit := int64(maxCounted) => limit := int64(1<<63 - 1)
@ runtime/volume/configfile/configfile.go | ./runtime/volume/configfile -run ^(TestUTF16|TestPanicIsAnError)$
a file in UTF-16 gets lines of another encoding | return nil, errEncoding => _ = errEncoding
a panic leaves Apply | if p := recover(); p != nil { => if p := any(nil); p != nil {
@ runtime/volume/configfile/yaml.go | ./runtime/volume/configfile -run ^TestUTF16$
the parser decodes UTF-16 | if !utf8.Valid(content) { => if !utf8.Valid(content) && false {
@ runtime/volume/scan.go | ./runtime/volume -run ^TestScanOf
a tree that is too deep is measured in part | s.unmeasured = v1.ReasonTooDeep => _ = v1.ReasonTooDeep
a folder that cannot be read ends the scan | if !errors.Is(err, fs.ErrPermission) { => if err != fs.ErrPermission {
a folder that cannot be read is no usage | s.unmeasured = v1.ReasonUnreadable => _ = v1.ReasonUnreadable
@ runtime/volume/restore_place.go | ./runtime/volume -run ^(TestRestore|TestReadersSeeOneTree)
a restore is no exchange | unix.RENAME_EXCHANGE) } => 0) }
@ controller/backup/restore.go | ./controller/backup -run ^TestDamagedRestore
a restore whose record cannot be read keeps its volume | errors.Join(err, r.giveUp(id)) => err
@ controller/backup/backup.go | ./controller/backup -run ^(TestVolumeDeletedBeforeTheRecord|TestDeadTarget)
space is released although an archive is left | if !recorded.Leftover { => if !o.Job.Outcome.Leftover {
a failed backup counts as its job ended | r.Metrics.observe(b.Spec.Target, recorded) => r.Metrics.observe(b.Spec.Target, v1.BackupStatus{State: v1.JobCompleted, Size: o.Job.Outcome.Size})
all targets share the permits of removals | target: b.Spec.Target, since => target: v1.TargetLocal, since
@ runtime/volume/restore.go | ./runtime/volume -run ^(TestRestore|TestReaders)
the old tree is removed while it is read | m.gate.drain(ctx, id) => error(nil)
@ runtime/volume/sweep.go | ./runtime/volume -run ^TestSweep
a sweep has no end | if s.steps < n { => if false {
what a sweep leaves is never removed | if errors.Is(err, errEnough) {\n\t\tm.sweeps.request(id) => if errors.Is(err, errEnough) {
@ runtime/volume/configure_turns.go | ./runtime/volume -run ^TestConfigTurn
a volume overtakes those that wait | if c.taken || ahead { => if c.taken || ahead && false {
a volume that asks no more stops the others | return now.Sub(p.asked) < placeAhead }) => return !p.asked.IsZero() })
a turn ends with its first file | size <= smallConfig || t.begun => size <= smallConfig
@ controller/download/jobs.go | ./controller/download -run Turn
a volume overtakes those that wait for a permit | return running+j.ahead(volume) < maxRunning => return running+0*j.ahead(volume) < maxRunning
@ controller/download/turn.go | ./controller/download -run Turn|Paused
downloads keep their permits while others wait | if time.Since(t.own.began) < turnTime { => if true {
downloads that wait for their next turn have no bound | if open > maxOpen { => if false {
@ controller/download/download.go | ./controller/download -run Turn
a download that waits for its turn shows as running | if job.paused { => if false {
@ runtime/fetch/turns.go | ./runtime/fetch -run Turn
a download is continued without a check of its version | request.Header.Set("If-Range", c.validator()) => _ = c.validator()
a download begins again in the middle of its file | request.Header.Set("Range", fmt.Sprintf("bytes=%d-", c.read)) => _ = fmt.Sprintf("bytes=%d-", c.read)
@ controller/container/roots.go | ./controller/container -run Root
a layer that nobody can measure has no limit | last.n >= rootTries && => false &&
one slow measurement stops a container | last.n >= rootTries && => true &&
@ controller/container/config_files.go | ./controller/container -run ConfigFiles
a start waits for its turn without a condition | errors.Join(err, s.recordConfigFiles(v1.Condition{Status: v1.False, Reason: "Waiting", Message: waitsForTurn})) => err
@ runtime/volume/gate.go | ./runtime/volume -run ^(TestRestore|TestReaders)
changes are not refused during a restore | if t := g.volumes[id]; t != nil && t.restoring {\n\t\treturn nil, v1.ErrVolumeRestoring => if false {\n\t\treturn nil, v1.ErrVolumeRestoring
a restore does not wait for changes | return t.changes == 0 => return true
@ runtime/volume/quota/replacement.go | ./runtime/volume -run ^(TestRestoreHardLimit|TestReadersOfHardLimit)
an interrupted replacement is not completed | return r.show()\n\t}\n\treturn r.Remove() => return r.Remove()\n\t}\n\treturn r.Remove()

@ api/auth/verify.go | ./api/auth
an expired token is valid | if !tx.Now().Before(o.Spec.ExpiresAt) { => if false {
a token of a replaced configured token is valid | if o.Spec.Issuer == "" || !same(o.Spec.Issuer, issuer) { => if false {
the child of a revoked token is valid | above, err := find(tx, parent)\n\t\tif err != nil { => above, err := find(tx, parent)\n\t\tif false {
a single-use token is used twice | if o.Spec.Spent { => if o.Spec.Spent && false {
@ api/auth/principal.go | ./api/auth ./api/server -run ^(TestMint|TestAuthenticate|TestScopes|TestTokenIsBoundToContainer|TestRestrictedToken)
every principal has every scope | return slices.Contains(p.Scopes, v1.ScopeAdmin) || slices.Contains(p.Scopes, s) => return true
a restricted token reaches every container | return !p.Restricted() || slices.Contains(p.present, container) => return true
a token reaches a later container of the same id | if o.Meta.UID == ref.UID { => if o.Meta.UID != "" {
@ api/server/access.go | ./api/server -run ^(TestEveryRouteIsGuarded|TestScopes|TestOrderOfChecks|TestVendorHeader|TestSingleUse|TestWhatSpendsASingleUse|TestPublicRoutes|TestABodyThatOutlivesItsToken)$
a route ignores the scopes of its token | if !r.allows(caller) { => if false {
a route accepts any media type | if !r.is(anyAccept) && !acceptsVendor(c) { => if false {
a request does not spend its single-use token | if err := auth.Spend(a.store, caller); err != nil { => if err := error(nil); err != nil {
@ cmd/berth/gc.go | ./cmd/berth -run ^TestGCPacer
a busy daemon collects a small heap all the time | if !busy { => if !busy || true {
garbage grows with the heap | int(100*gcGarbage/max(kept, 1)) => 100
a small heap doubles more than once | gcMost) => 500)
growth changes with each collection | limit = gcIdle => limit = gcBusy
the garbage of a busy daemon stays when it rests | p.idle.Reset(gcIdle) => _ = p.idle
only one collection is seen | p.await()\n\t}, p) => }, p)
a pacer that was stopped goes on | if p.stopped.Load() { => if false {
@ api/sftp/guard.go | ./api/sftp -run ^(TestGuard|TestDirection|TestPipelined|TestJoined|TestAnswers)
an empty channel is not noticed | g.left, inBuffer-1)] => g.left)]
appended writes overtake one another | flags&flagAppend != 0 => false
a file that is open for writing may be read | flags |= flagRead | addedRead => flags |= flagRead
large answers are kept for one another | fits := len(g.out)+len(p)+g.outLeft <= maxJoined => fits := true
the beginning of an answer leaves before the rest | if err = g.flush(max(len(p), g.outLeft)); err == nil { => if true {
an answer waits after the last one | g.requests.close()\n\tg.mu.Lock() => g.mu.Lock()
@ api/sftp/meter.go | ./api/sftp -run ^(TestMeter|TestFlood|TestWindow)
an upload fills its window | case m.ahead <= maxAhead, => case true,
downloads stall behind their requests | m.contents > 0, => false,
a client that does not read is stuck for ever | return stuck - time.Since(m.last) => return stuck
keepalives wait while the storage hangs | return min(hung-time.Since(m.last), stuck) => return stuck
a connection waits although no channel is served | !m.serving, m.closed: => m.closed:
a closed connection waits | !m.serving, m.closed: => !m.serving:
room is not reported | m.ahead <= maxAhead/2 { // not => m.ahead < 0 { // not
a long upload waits for what the wire adds | if all || took >= stuck { => if all {
a slow read ends the count of a flood | if all {\n => if all || took >= stuck {\n
@ api/sftp/join.go | ./api/sftp -run ^TestParts
the first part of a packet leaves alone | unix.MSG_MORE => 0
a slow client loses the first part of a packet | return failed != unix.EAGAIN => return true
@ api/sftp/inflight.go | ./api/sftp -run ^(TestGuard|TestPipelined|TestOrder|TestAnswers)
content overtakes other requests | return f.count[other] > 0 => return false
other requests overtake content | return f.count[content] > 0 => return false
appended writes are carried out beside one another | case r.class == appended, f.count[appended] > 0: => case false:
a close waits for what pkg/sftp puts before it | case r.closes: => case false:
more than the limit is in flight | f.cost+r.cost > maxInFlight || => false ||
an answer waits for a request that has not arrived | return f.list[1].arrived => return true
each answer is written by itself | return f.next.arrived => return false
@ api/sftp/handlers.go | ./api/sftp -run ^(TestAttributes|TestAudit)
a request on a handle is carried out on its path | return r.Context() == context.Background() => return r.Context() == context.TODO()
a request that changes nothing has an entry | case !changed: => case !changed && false:
@ runtime/volume/walk/beneath.go | ./runtime/volume -run ^TestOpenFile
a file outside the volume is opened | Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS} => Resolve: 0}
@ runtime/volume/roots.go | ./runtime/volume -run ^(TestRoots|TestInPlace|TestOpenFile)
an old kernel opens no file | \treturn s.OpenFile(p, flags, perm) => \treturn nil, fs.ErrInvalid
a directory that was replaced stays in use | info == nil && time.Since(s.checked) >= rootCheck => false
a directory stays open without a user | case time.Since(s.ended) >= rootTime: => case false:
the directory of a restored volume stays in use | s := r.kept[id]\n\tif s == nil {\n\t\treturn\n\t} => return\n\ts := r.kept[id]
@ store/kv/wal.go | ./store/kv -run (Log|Synced)
a log is replayed whatever Badger has | || binary.BigEndian.Uint64(r[8:]) != version => || false
a damaged record is replayed | binary.BigEndian.Uint32(r[4:]) != crc32.Checksum(r[8:], castagnoli) || => false ||
a commit leaves the log as it is | if w != nil && w.end > 0 { => if false {
a flush of the log leaves it in memory | err = unix.Fdatasync(int(fd)) => err = nil
a record that the log has in part counts | return copy(w.mem[at:], b) == len(b) => return copy(w.mem[at:], b) > 0
@ store/batch.go | ./store -run ^(TestFlushLater|TestGoexit)
updates are lost with one that ends its goroutine | b.ops = b.ops[:last]\n\tb.commit() => b.ops = b.ops[:last]\n\tb.reset()
@ api/sftp/login.go | ./api/sftp -run ^(TestLogin|TestKey|TestSession)
a key logs in without a scope | if err == nil && a.readOnly && !p.HasScope(v1.ScopeRead) { => if false {
a token reaches every volume | if err == nil && !can { => if err == nil && !can && false {
the number of sessions has no limit | if !ok { => if !ok && false {
@ api/sftp/audit.go | ./api/sftp -run ^(TestLoginScopes|TestAudit|TestUnrecorded)
a read-only session may change files | if s.readOnly { => if false {
a change is not recorded | return s.statusOf(name, s.record(s.newEntry(action, name), frees)) => return nil
@ runtime/volume/inplace_file.go | ./runtime/volume ./api/sftp -run ^(TestInPlace|TestQuota|TestFailedWrite)
a write after a restore is acknowledged | if err == nil && h.gone.Load() { => if false {
a file counts for each of its handles | h.shrinks != h.counted.shrinks.Load() { => false {
a hole costs nothing to fill | need := max(h.size-h.base, min(h.written, h.size-h.onDisk)) => need := h.size-h.base
a new file over the limit stays | if errors.Is(err, v1.ErrSizeLimit) && h.created { => if false {
a failed write stays reserved | h.settle() // a failed write keeps no reservation => // nothing
a failed append stays reserved | WriteAt(p, info.Size()); err != nil { => WriteAt(p, info.Size()); false {
@ runtime/volume/inplace_attributes.go | ./runtime/volume ./api/sftp -run ^(TestInPlace|TestAttributes|TestQuota)
a set-id bit may be set | case *a.Mode != a.Mode.Perm() || p == root: => case p == root:
@ api/sftp/panic.go | ./api/sftp -run Panic
a panic ends the daemon in a request | if p := recover(); p != nil {\n\t\ts.server.logPanic => if p := any(nil); p != nil {\n\t\ts.server.logPanic
a panic ends the daemon in a session | \t\t\tif p := recover(); p != nil { => \t\t\tif p := any(nil); p != nil {
a panic ends the daemon in a login | if p := recover(); p != nil {\n\t\ts.logPanic => if p := any(nil); p != nil {\n\t\ts.logPanic
@ controller/catch.go | ./controller ./controller/volume ./controller/backup -run Panic
a panic leaves Catch | if p := recover(); p != nil { => if p := any(nil); p != nil {
@ controller/volume/volume.go | ./controller/volume -run Unmeasured
a volume that cannot be measured any more is not recorded |  && notMeasured(v.Status) == r.Directories.Unmeasured(id) { =>  {
@ controller/volume/scan.go | ./controller/volume -run Panic
a walk that panics ends the scans | err := controller.Catch(s.Log, "disk usage scan", func() (err error) { => err := func(_ any, _ string, f func() error, _ ...any) error { return f() }(s.Log, "disk usage scan", func() (err error) {
@ controller/backup/jobs.go | ./controller/backup -run Panic
what a job that panics has written is forgotten | Leftover: k.kind == BackingUp} => Leftover: false}
@ controller/download/jobs.go | ./controller/download -run Panic
a download that panics ends the daemon | p := recover()\n => p := any(nil)\n
@ api/auth/keys.go | ./api/auth -run Key
a spent token logs in with its key | err == nil && (o.Spec.Spent || => err == nil && (false ||
EOF
}

# lines writes out the line ends and tabs of a text.
lines() {
	local text=${1//\\n/$'\n'}
	printf '%s' "${text//\\t/$'\t'}"
}

# try tests one fault of $file, and returns 1 if no test sees it.
try() {
	local name=$1 from=$2 to=$3 text out=$copy/.out
	text=$(cat "$copy/$file")
	local rest=${text#*"$from"}
	if [ "$rest" = "$text" ] || [ "${rest#*"$from"}" != "$rest" ]; then
		echo "NOT FOUND ONCE  $file: $name"
		return 1
	fi
	printf '%s\n' "${text/"$from"/"$to"}" >"$copy/$file"
	local status=0
	# shellcheck disable=SC2086
	(cd "$copy" && "$go" test -vet=off -failfast -timeout 2m $tests) >"$out" 2>&1 || status=$?
	printf '%s\n' "$text" >"$copy/$file"
	if [ $status = 0 ]; then
		echo "NOT SEEN        $file: $name"
		return 1
	fi
	if grep -q 'build failed\|setup failed' "$out"; then
		echo "DOES NOT BUILD  $file: $name"
		return 1
	fi
	echo "seen            $file: $name: $(grep -m1 -oE -- '--- FAIL: [^ ]+|panic: .*' "$out" || tail -1 "$out")"
}

missed=0 tried=0
while IFS= read -r line; do
	case $line in
	'') continue ;;
	'@ '*)
		file=${line#@ } tests=${file#* | } file=${file%% | *}
		continue
		;;
	esac
	[[ "$file $line" == *"${1:-}"* ]] || continue
	name=${line%% | *} change=${line#* | }
	tried=$((tried + 1))
	from=${change%% => *} to=${change#* => }
	try "$name" "$(lines "$from")" "$(lines "$to")" || missed=$((missed + 1))
done < <(faults)
echo "$tried faults, $missed missed"
[ $tried -gt 0 ] && [ $missed = 0 ]
