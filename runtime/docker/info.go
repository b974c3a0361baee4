package docker

import (
	"context"
	"errors"
	"fmt"

	"berth/runtime"
)

// Info asks the engine at host, which is that of Config, about itself. It needs no
// Engine, whose store may be closed.
func Info(ctx context.Context, host string) (info runtime.EngineInfo, err error) {
	conn, err := newConnection(host)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if err := conn.ping(ctx); err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	version, err := conn.client().ServerVersion(ctx)
	if err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	i, err := conn.client().Info(ctx)
	if err != nil {
		return info, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return runtime.EngineInfo{
		Version: version.Version, API: version.APIVersion, Kernel: i.KernelVersion, OS: i.OperatingSystem,
		StorageDriver: i.Driver, CgroupVersion: i.CgroupVersion, LiveRestore: i.LiveRestoreEnabled, CPUs: i.NCPU,
		Root:   i.DockerRootDir,
		Limits: runtime.EngineLimits{Memory: i.MemoryLimit, Swap: i.SwapLimit, CPU: i.CPUCfsQuota, Pids: i.PidsLimit},
	}, nil
}
