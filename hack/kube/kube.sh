#!/usr/bin/env bash
# Runs a Kubernetes cluster beside a command: etcd, kube-apiserver, kube-scheduler,
# kube-controller-manager, and nodes with kubelet, containerd and runc.
#
#   hack/kube/kube.sh get                fetch and build what is missing in the cache
#   hack/kube/kube.sh with [-n N] CMD…   run CMD beside a cluster of N nodes (default 1)
#   hack/kube/kube.sh power on|off I     for CMD: boot node I, or end all its processes and its link
#   hack/kube/kube.sh link up|down I     for CMD: heal or cut the link of node I
#
# The Kubernetes programs are built from the Go modules of this directory (6.5 minutes on two
# cores). etcd, containerd and the CNI plugins are Debian's packages, unpacked into the cache and
# not installed. The cache has a directory for each go.sum. The cluster runs in its own network,
# mount and pid namespaces: all its processes end with the command, and nothing of it is left,
# also when this script is killed.
#
# CMD gets kubectl, KUBECONFIG (a cluster administrator's), KUBE_WORLD (a directory that every
# node shares with CMD) and KUBE_HOST (an address of CMD that nodes reach; registries there on the
# ports 5000 and 5001 are used without TLS).
# Environment: BERTH_KUBE_CACHE (default /var/cache/berth-kube), BERTH_KUBE_MIRROR (of Debian;
# default: the machine's), BERTH_KUBE_LOGS (a directory for the logs of the cluster).
set -Eeuo pipefail
trap 'say "failed: $BASH_COMMAND"' ERR

self=$(realpath "$0")
here=$(dirname "$self")
cache=$(realpath -m "${BERTH_KUBE_CACHE:-/var/cache/berth-kube}")
host=10.77.0.1                                # of the control plane and of CMD; node I is 10.77.0.10I
packages='containerd etcd-server containernetworking-plugins kubectl' # of Debian sid: Kubernetes needs containerd 2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
tools=$cache/kube-$(cat "$here"/{go.mod,go.sum,main.go} - <<<"$packages" | sha256sum | cut -c 1-16)

say() { echo "kube.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# --- what is fetched and built ---

# get completes the cache. Each part has its name only when it is complete.
get() {
	local tool dir
	[ "$(id -u)" = 0 ] || die "a cluster needs root"
	for tool in ip iptables openssl curl runc nsenter flock apt-get dpkg; do
		command -v $tool >/dev/null || die "install $tool, then call again"
	done
	for dir in $(hierarchies); do [ -w "$dir" ] || die "$dir cannot be written: does this container lack --privileged?"; done
	unshare --mount --net --pid --fork true || die "no namespaces: does this container lack --privileged?"
	mkdir -p "$tools"
	exec 8>>"$cache/lock"
	flock 8
	[ -e "$tools/root" ] || unpack
	[ -e "$tools/kube" ] || build
	exec 8>&-
}

build() {
	find "$cache" -mindepth 1 -maxdepth 1 -name 'kube-*' -mtime +7 -exec rm -rf {} + # those of other go.sums
	say "building Kubernetes; the first time this takes 6 to 10 minutes"
	# Without inlining and debug information the compiler has a third less to do.
	own build -trimpath '-gcflags=all=-l -dwarf=false' -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(own list -m -f '{{.Version}}' k8s.io/kubernetes)" \
		-o "$tools/kube.part" .
	mv "$tools/kube.part" "$tools/kube"
}

# own runs the Go command on the module of this directory. A function go would replace CMD's.
own() { (cd "$here" && CGO_ENABLED=0 "$("$here/../go.sh")" "$@"); }

# unpack unpacks the packages into root. The lists of apt are its own.
unpack() {
	local apt=$tools/apt program deb options mirror
	[ -e $keyring ] || die "install debian-archive-keyring, then call again"
	mirror=${BERTH_KUBE_MIRROR:-$(grep -rshoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d | head -n 1 || true)}
	rm -rf "$apt" "$tools/root.part"
	mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs} "$tools/root.part"
	touch "$apt/status"
	echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} sid main" >"$apt/sources.list"
	options="-q -o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$apt/lists
		-o Dir::Cache=$apt/cache -o Dir::State::status=$apt/status -o APT::Sandbox::User=root"
	apt-get $options update >&2
	(cd "$apt/debs" && apt-get $options download $packages >&2)
	for deb in "$apt"/debs/*.deb; do dpkg -x "$deb" "$tools/root.part"; done
	for program in containerd etcd; do
		"$tools/root.part/usr/bin/$program" --version >/dev/null || die "$program of Debian sid does not run on this machine"
	done
	mv "$tools/root.part" "$tools/root"
	rm -rf "$apt"
}

# --- the cluster ---

# with [-n N] CMD… runs CMD beside a cluster.
with() {
	local nodes=1 code=0 alive
	if [ "${1:-}" = -n ]; then
		nodes=$2
		shift 2
	fi
	[ $# -gt 0 ] || die "no command"
	(get)
	# The guard outlives this script, and signals to its process group. When nobody holds this
	# pipe any more, it ends the cluster.
	exec {alive}> >(exec setsid --wait "$self" guard "$nodes" "$@")
	local guard=$!
	trap 'exec {alive}>&-' INT TERM HUP
	wait $guard || code=$?
	while kill -0 $guard 2>/dev/null; do wait $guard || code=$?; done # after a signal
	exit $code
}

# guard N CMD… runs CMD beside a cluster until CMD, or the input, ends, and removes what is left.
guard() {
	local dir code=0
	exec 3<&0
	dir=$(mktemp -d /var/tmp/bkXXXXXX)
	KUBE_WORLD=$dir KUBE_HOST=$host KUBE_PWD=$PWD unshare --mount --propagation private --net --pid --fork --kill-child --mount-proc \
		"$self" inside "$@" 3<&- &
	local child=$!
	(
		read -r <&3 || true
		# When the first process of a pid namespace has ended, the kernel has ended all others.
		until pkill -KILL -P $child; do sleep 0.1; done
	) &
	local watch=$!
	wait $child 2>/dev/null || code=$?
	kill $watch 2>/dev/null || true
	cgroups remove "$(basename "$dir")"
	again rm -rf --one-file-system "$dir"
	exit $code
}

# again CMD… repeats a command that fails while processes that were killed are ending.
again() {
	local end=$((SECONDS + 30))
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || die "failed for 30 s: $*"
		sleep 0.2
	done
}

# hierarchies prints the directory of each cgroup hierarchy: many in version 1, one in version 2.
hierarchies() {
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		echo /sys/fs/cgroup
	else
		dirname /sys/fs/cgroup/*/cgroup.procs
	fi
}

# cgroups add|remove NAME creates or removes a cgroup in every hierarchy.
cgroups() {
	local dir
	for dir in $(hierarchies); do
		if [ "$1" = remove ]; then
			[ ! -d "$dir/$2" ] || again find "$dir/$2" -depth -type d -exec rmdir {} +
			continue
		fi
		mkdir -p "$dir/$2"
		if [ -e "$dir/cgroup.controllers" ]; then # version 2: the cgroup above enables the limits of this one
			sed 's/[a-z]\+/+&/g' "$dir/$2/../cgroup.controllers" >"$dir/$2/../cgroup.subtree_control"
		fi
		if [ -e "$dir/cgroup.clone_children" ] && [ -e "$dir/cpuset.cpus" ]; then
			cat "$dir/cpuset.cpus" >"$dir/$2/cpuset.cpus"
			cat "$dir/cpuset.mems" >"$dir/$2/cpuset.mems"
			echo 1 >"$dir/$2/cgroup.clone_children"
		fi
	done
}

# inside N CMD… is the first process of the cluster's namespaces.
inside() {
	local nodes=$1 i code=0 kube=$tools/kube
	shift
	mount --make-rshared / # the nodes mount over directories of their own
	mount -t tmpfs tmpfs /run
	mkdir -p /run/netns
	ip link set lo up
	ip link add kbr0 type bridge
	ip addr add $host/24 dev kbr0
	ip link set kbr0 up
	cd "$KUBE_WORLD"
	mkdir -p etc log
	own build -trimpath -ldflags '-s -w' -o "$PWD/pause" ./pause
	./pause image pause.tar
	credentials "$nodes"
	cgroups add "$(basename "$KUBE_WORLD")"
	begin etcd "$tools/root/usr/bin/etcd" --data-dir etcd --listen-client-urls http://$host:2379 --advertise-client-urls http://$host:2379 \
		--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
		--initial-cluster default=http://127.0.0.1:2380 --log-level warn --unsafe-no-fsync
	begin apiserver "$kube" apiserver --etcd-servers=http://$host:2379 --advertise-address=$host --bind-address=$host --secure-port=6443 \
		--service-cluster-ip-range=10.96.0.0/16 --tls-cert-file=etc/apiserver.crt --tls-private-key-file=etc/apiserver.key \
		--client-ca-file=etc/ca.crt --kubelet-client-certificate=etc/kubelet-client.crt --kubelet-client-key=etc/kubelet-client.key \
		--kubelet-preferred-address-types=InternalIP --service-account-key-file=etc/sa.key --service-account-signing-key-file=etc/sa.key \
		--service-account-issuer=https://kubernetes --authorization-mode=Node,RBAC --token-auth-file=etc/tokens.csv \
		--enable-admission-plugins=NodeRestriction --cert-dir=etc
	await apiserver ask readyz
	# A node that does not answer is reported after 10 s, and not after 50 s: the tests wait for it.
	begin manager "$kube" controller-manager --kubeconfig=etc/admin.conf --service-account-private-key-file=etc/sa.key \
		--root-ca-file=etc/ca.crt --leader-elect=false --bind-address=127.0.0.1 --cert-dir=etc \
		--node-monitor-grace-period=10s --node-monitor-period=1s
	begin scheduler "$kube" scheduler --kubeconfig=etc/admin.conf --leader-elect=false --bind-address=127.0.0.1 --cert-dir=etc
	for i in $(seq "$nodes"); do add_node "$i"; done
	for i in $(seq "$nodes"); do await "node n$i" node_ready "$i"; done
	say "Kubernetes is up with $nodes node(s) after $SECONDS s"
	cd "$KUBE_PWD"
	KUBECONFIG=$KUBE_WORLD/etc/admin.conf PATH=$PATH:$tools/root/usr/bin "$@" &
	wait $! || code=$?
	if [ -n "${BERTH_KUBE_LOGS:-}" ]; then
		mkdir -p "$BERTH_KUBE_LOGS"
		cp "$KUBE_WORLD"/log/* "$BERTH_KUBE_LOGS"
	fi
	exit $code
}

# begin NAME CMD… runs a program in the background, with its log in log/NAME.
begin() {
	local name=$1
	shift
	setsid "$@" >>"log/$name" 2>&1 </dev/null &
	disown
}

# await WHAT CMD… waits until CMD succeeds.
await() {
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			tail -n 20 log/* >&2
			die "$what is not ready"
		fi
		sleep 0.2
	done
}

ask() { curl -sf --max-time 5 --cacert etc/ca.crt -H 'Authorization: Bearer admin' "https://$host:6443/$1"; }

node_ready() { ask "api/v1/nodes/n$1" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }

# credentials N writes certificates, tokens and client configurations of the cluster and N nodes.
credentials() {
	local user nodes
	nodes=$(seq -f node%g "$1")
	cd etc
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=kube-ca 2>/dev/null
	certificate apiserver /CN=kube-apiserver "subjectAltName=IP:$host,IP:10.96.0.1,DNS:kubernetes.default.svc
		extendedKeyUsage=serverAuth"
	certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client extendedKeyUsage=clientAuth
	for user in $nodes; do certificate "$user" /CN="$user" "subjectAltName=IP:10.77.0.10${user#node}
		extendedKeyUsage=serverAuth"; done
	openssl genrsa -out sa.key 2048 2>/dev/null
	echo 'admin,admin,1,"system:masters"' >tokens.csv
	for user in $nodes; do echo "$user,system:node:n${user#node},$user,\"system:nodes\"" >>tokens.csv; done
	for user in admin $nodes; do
		cat >"$user.conf" <<-CONFIG
			apiVersion: v1
			kind: Config
			clusters: [{name: k, cluster: {server: "https://$host:6443", certificate-authority: $PWD/ca.crt}}]
			users: [{name: u, user: {token: $user}}]
			contexts: [{name: c, context: {cluster: k, user: u}}]
			current-context: c
		CONFIG
	done
	cd ..
}

# certificate NAME SUBJECT EXTENSIONS writes a key and a certificate.
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 30 -extfile <(echo "$3") 2>/dev/null
}

# --- a node ---

# add_node I starts a node in its own network, mount and pid namespaces.
add_node() {
	ip netns add "kn$1"
	ip link add "kv$1" type veth peer name eth0 netns "kn$1"
	ip link set "kv$1" master kbr0 up
	ip -n "kn$1" link set lo up
	ip -n "kn$1" addr add "10.77.0.10$1/24" dev eth0
	ip -n "kn$1" link set eth0 up
	ip -n "kn$1" route add default via $host
	boot "$1"
}

# boot I starts the processes of a node. They end with the first of them, whose id it keeps.
boot() {
	begin "node$1" nsenter "--net=/run/netns/kn$1" unshare --pid --fork --mount --propagation private --mount-proc --uts --ipc --kill-child=KILL \
		"$self" node "$1"
	echo $! >"etc/node$1.pid"
}

# power on|off I boots a node, or ends all its processes and its link at once.
power() {
	cd "$KUBE_WORLD"
	if [ "$1" = off ]; then
		kill -KILL "$(cat "etc/node$2.pid")"
		link down "$2"
		return
	fi
	# A machine that boots has neither of these.
	rm -rf --one-file-system "n$2/run"
	cgroups remove "$(basename "$KUBE_WORLD")/n$2"
	link up "$2"
	boot "$2"
}

# link up|down I heals or cuts the link of a node.
link() {
	ip link set "kv$2" "$1"
}

# node I is the first process of a node.
node() {
	local name=n$1 dir=$KUBE_WORLD/n$1 setting
	mount -t tmpfs tmpfs /var/lib # the kubelet has a directory there
	mkdir -p "$dir"/{run,kubelet,containerd,cni,log,sys} /var/lib/kubelet
	mount --bind "$dir/run" /run
	mount --bind "$dir/kubelet" /var/lib/kubelet
	mount --make-shared /var/lib/kubelet
	mount --bind "$dir/log" /var/log
	# The kubelet would change these settings of the whole machine. It finds the values that it wants.
	for setting in vm/overcommit_memory:1 vm/panic_on_oom:0 kernel/panic:10 kernel/panic_on_oops:1 kernel/keys/root_maxkeys:1000000 kernel/keys/root_maxbytes:25000000; do
		echo "${setting##*:}" >"$dir/sys/$(basename "${setting%%:*}")"
		mount --bind "$dir/sys/$(basename "${setting%%:*}")" "/proc/sys/${setting%%:*}"
	done
	# One overlay cannot be above another.
	[ "$(stat -f -c %T "$dir")" = overlayfs ] && CONTAINERD_SNAPSHOTTER=native || CONTAINERD_SNAPSHOTTER=overlayfs
	export CONTAINERD_SNAPSHOTTER
	configure_node "$1" "$dir"
	cgroups add "$(basename "$KUBE_WORLD")/$name"
	export PATH=$tools/root/usr/sbin:$tools/root/usr/bin:$PATH
	containerd --config "$dir/containerd.toml" >>"$KUBE_WORLD/log/containerd$1" 2>&1 &
	for _ in $(seq 100); do
		ctr version >/dev/null 2>&1 && break
		sleep 0.1
	done
	ctr -n k8s.io images import --local "$KUBE_WORLD/pause.tar"
	exec "$tools/kube" kubelet "--config=$dir/kubelet.yaml" "--kubeconfig=$KUBE_WORLD/etc/node$1.conf" "--hostname-override=$name" \
		"--node-ip=10.77.0.10$1" --root-dir=/var/lib/kubelet
}

# configure_node I DIR writes the configuration of containerd, its network plugins and the kubelet.
configure_node() {
	local port
	for port in 5000 5001; do
		mkdir -p "$2/registries/$host:$port"
		echo "server = \"http://$host:$port\"" >"$2/registries/$host:$port/hosts.toml"
	done
	cat >"$2/containerd.toml" <<-CONFIG
		version = 3
		root = "$2/containerd"
		state = "/run/containerd"
		[grpc]
		address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.cri.v1.images"]
		snapshotter = "$CONTAINERD_SNAPSHOTTER"
		[plugins."io.containerd.cri.v1.images".pinned_images]
		sandbox = "localhost/pause:1"
		[plugins."io.containerd.cri.v1.images".registry]
		config_path = "$2/registries"
		[plugins."io.containerd.cri.v1.runtime"]
		restrict_oom_score_adj = true
		disable_apparmor = true
		[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.cri.v1.runtime".cni]
		bin_dirs = ["$tools/root/usr/lib/cni"]
		conf_dir = "$2/cni"
	CONFIG
	cat >"$2/cni/10-k.conflist" <<-CONFIG
		{"cniVersion": "1.0.0", "name": "k", "plugins": [
		  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
		   "ipam": {"type": "host-local", "dataDir": "/run/ipam", "ranges": [[{"subnet": "10.88.$1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		  {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}]}
	CONFIG
	cat >"$2/kubelet.yaml" <<-CONFIG
		kind: KubeletConfiguration
		apiVersion: kubelet.config.k8s.io/v1beta1
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $KUBE_WORLD/etc/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: $KUBE_WORLD/etc/node$1.crt
		tlsPrivateKeyFile: $KUBE_WORLD/etc/node$1.key
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		cgroupDriver: cgroupfs
		cgroupRoot: /$(basename "$KUBE_WORLD")/n$1
		failCgroupV1: false
		failSwapOn: false
		resolvConf: ""
		podLogsDir: /var/log/pods
		makeIPTablesUtilChains: false
		evictionHard: {memory.available: 50Mi}
		nodeLeaseDurationSeconds: 8
		nodeStatusUpdateFrequency: 3s
		enforceNodeAllocatable: [none]
	CONFIG
}

case ${1:-} in
get | with | guard | inside | node | power | link) "$@" ;;
*)
	sed -n '2,22p' "$self" >&2
	exit 2
	;;
esac
