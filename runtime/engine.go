package runtime

// The methods of docker.Engine, kubernetes.Engine and fake.Engine. Each is idempotent, so it can be
// called again after a crash. Each has its own deadline unless it streams.
//
//	Inspect(ctx, Name) (State, error)                 ErrNotFound; with ErrLost the last state that is known
//	List(ctx) ([]Found, error)                        this store's containers of both roles
//	Instance(ctx) (string, error)                     identifies the engine's process, see below; empty if the engine has no such id
//	Gateway(ctx) (string, error)                      the address of the host as containers see it; empty if it is unknown
//	Watch(ctx, listed func([]Found), notify func(Name)) error
//	                                                  streams: subscribes, lists, calls listed, then calls notify for each
//	                                                  event; returns an error when the stream ends
//	ImageID(ctx, ref string) (string, error)          of the image on the host; empty if it is not there
//	Foreign(ctx, imageID string) (string, error)      the platforms of an image and of the machine, such as "linux/arm64, and this
//	                                                  machine is linux/amd64", if the machine cannot run the image by itself
//	Pull(ctx, ref string, Auth, progress func(Progress)) error
//	                                                  streams; ErrImageNotFound, ErrDenied, ErrStalled
//	RemoveImage(ctx, id, ref string) error            removes an image that has no other name than ref; ErrImageInUse
//	Create(ctx, Spec) (containerID string, err error) ErrImageNotFound; adopts the container of that name and spec hash;
//	                                                  first removes one with another hash, unless it runs: ErrRunning
//	Account(ctx, Name) (Account, error)               the user of its processes, as its image knows names
//	Probe(ctx, Spec) error                            returns the error of a Create without creating the container
//	Start(ctx, Name) error                            nil if it runs; ErrPortTaken, ErrNoAddress, ErrBadCommand, ErrHost,
//	                                                  ErrMountMissing, ErrNotFound;
//	                                                  of an engine of many hosts also ErrStarting, ErrNoRoom, and what a Pull returns
//	Signal(ctx, Name, signal string) error            nil if it does not run
//	Kill(ctx, Name) error                             sends SIGKILL; returns after the exit; nil if it does not run
//	Remove(ctx, Name) error                           ErrRunning if it runs; nil if it does not exist
//	Update(ctx, Name, Live) error                     changes the limits
//	Connect(ctx, Name) error                          connects it to the network of the containers
//	Unpause(ctx, Name) error                          nil if it is not paused
//	Logs(ctx, t Target, since time.Time, each func(Line) error) error
//	                                                  streams; since is exclusive; nil after the container's exit, and then the
//	                                                  last lines may be missing: a read with t.Ended has them
//	Resize(ctx, containerID string, columns, rows uint) error
//	                                                  of its terminal
//	Input(ctx, containerID string, data []byte) error ErrNotRunning, ErrInputFull
//	Stats(ctx, containerID string) (Stats, error)     ErrNotFound, ErrNotRunning
//
// An engine of many hosts also returns ErrLost from each call that would have to reach a
// container on a host that does not answer. Such a container may run on: nothing starts it
// elsewhere before an operator has declared its host to be off. Then its run is Interrupted.
//
// Instance changes with each start of the engine that ended containers. It uses
// a new connection. An engine that shuts down refuses new connections before it
// stops the first container, so the engine did not cause any exit that was
// observed before Instance answered.
