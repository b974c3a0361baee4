#!/usr/bin/env bash
# Tests the hard limits of volumes on ext4 and XFS with project quotas. Where this kernel has none,
# a virtual machine with Debian's kernel runs the tests (emulated: half a minute).
#
#   hack/quota.sh       needs root, mkfs.ext4 and mkfs.xfs; gets the rest with apt-get
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'umount "$dir/ext4" "$dir/xfs" 2>/dev/null || true; rm -rf "$dir"' EXIT
CGO_ENABLED=0 go test -c -o "$dir/volume.test" ./runtime/volume
truncate -s 400M "$dir/ext4.img" "$dir/xfs.img"
mkfs.ext4 -q -F -O quota,project -E quotatype=prjquota "$dir/ext4.img"
mkfs.xfs -q "$dir/xfs.img"
mkdir "$dir/ext4" "$dir/xfs"
if mount -o loop,prjquota "$dir/ext4.img" "$dir/ext4" 2>/dev/null && mount -o loop,pquota "$dir/xfs.img" "$dir/xfs" 2>/dev/null; then
	cd runtime/volume
	BERTH_TEST_QUOTAS="$dir/ext4:$dir/xfs" "$dir/volume.test" -test.v -test.run TestHardLimit
	exit
fi

command -v qemu-system-x86_64 cpio >/dev/null || apt-get install -y -q --no-install-recommends qemu-system-x86 busybox-static cpio
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p' | head -1)
kernel=${package#linux-image-}
(cd "$dir" && apt-get download -q "$package" && dpkg -x "$package"_*.deb kernel) >/dev/null 2>&1
root=$dir/root modules=lib/modules/$kernel
mkdir -p "$root"/{bin,proc,sys,dev,tmp,ext4,xfs} "$root/$modules"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$dir/volume.test" "$root/"
(cd "$dir/kernel/$modules" && find kernel/{fs,lib,crypto,arch,drivers/virtio,drivers/block} -name '*.ko' | xargs cp --parents -t "$root/$modules" modules.builtin modules.order)
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
depmod
for m in virtio_pci virtio_blk xfs quota_v2; do modprobe $m; done
mount -t ext4 -o prjquota /dev/vda /ext4
mount -t xfs -o pquota /dev/vdb /xfs
BERTH_TEST_QUOTAS=/ext4:/xfs /volume.test -test.v -test.run TestHardLimit
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$dir/initrd"
timeout 300 qemu-system-x86_64 -m 1024 -nographic -no-reboot -kernel "$dir/kernel/boot/vmlinuz-$kernel" -initrd "$dir/initrd" \
	-append 'console=ttyS0 quiet panic=-1' -drive "file=$dir/ext4.img,format=raw,if=virtio" -drive "file=$dir/xfs.img,format=raw,if=virtio" |
	tr -d '\r' | tee "$dir/log"
grep -q '^PASS$' "$dir/log"
