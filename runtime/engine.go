package runtime

// The methods that docker.Engine and fake.Engine both have. Each can be called
// again after a crash, and does nothing if its work is already done; each has a
// deadline of its own unless it says that it streams.
//
//	Inspect(ctx, Name) (State, error)                 ErrNotFound
//	List(ctx) ([]Found, error)                        this store's, both roles
//	Instance(ctx) (string, error)                     identifies the engine's process, see below; empty if the engine does not name it
//	Watch(ctx, listed func([]Found), notify func(Name)) error
//	                                                  streams: subscribes, lists, calls listed, then notify per event;
//	                                                  ends with an error when the stream does
//	HasImage(ctx, ref string) (bool, error)
//	Pull(ctx, ref string, Auth, progress func(Progress)) error
//	                                                  streams; ErrImageNotFound, ErrDenied, ErrStalled
//	Create(ctx, Spec) (containerID string, err error) ErrImageNotFound; the one of that name and stamp is adopted,
//	                                                  one of that name and another stamp is removed first if it does not run
//	Start(ctx, Name) error                            nil if it runs; ErrPortTaken, ErrBadCommand, ErrMountMissing, ErrNotFound
//	Signal(ctx, Name, signal string) error            nil if it does not run
//	Kill(ctx, Name) error                             SIGKILL; returns when it is dead; nil if it does not run
//	Remove(ctx, Name) error                           never a running one; nil if there is none
//	Update(ctx, Name, Live) error                     changes limits
//	Unpause(ctx, Name) error                          nil if it is not paused
//	Logs(ctx, t Target, since time.Time, each func(Line) error) error
//	                                                  streams; since is exclusive; nil at the container's end
//	Input(ctx, containerID string, data []byte) error ErrNotRunning
//	Stats(ctx, containerID string) (Stats, error)     ErrNotFound, ErrNotRunning
//
// Instance differs after each start of the engine that ended containers. It is
// asked over a new connection, which an engine refuses from the moment on at
// which it begins to shut down, before it stops the first container: an exit
// that was observed before an answer is not the engine's doing.
