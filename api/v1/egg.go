package v1

// EggRequest is an egg, a game definition of the Pterodactyl and Pelican panels, and the choices
// for one container of it.
type EggRequest struct {
	Egg        string            `json:"egg" api:"required"`    // the file, JSON or YAML, at most 1 MiB
	InternalID string            `json:"internal_id,omitempty"` // of the container
	VolumeID   string            `json:"volume_id,omitempty"`   // of the container
	Image      string            `json:"image,omitempty"`       // the name of one of the images, or its reference; empty: the first
	Startup    string            `json:"startup,omitempty"`     // the name of one of the startup commands; empty: the first
	Variables  map[string]string `json:"variables,omitempty"`   // values by name; others have their defaults
	Ports      []Port            `json:"ports,omitempty"`       // the first is the game's
	Memory     int64             `json:"memory,omitempty"`      // bytes that the game may use; 0: no limit
	User       string            `json:"user,omitempty"`        // of the server; empty: 988:988
}

// EggImport is the container that an EggRequest describes.
type EggImport struct {
	Name        string        `json:"name"`        // of the egg
	Description string        `json:"description"` // of the egg
	Images      []EggChoice   `json:"images"`      // the first is the default
	Startups    []EggChoice   `json:"startups"`    // startup commands; the first is the default
	Variables   []EggVariable `json:"variables"`   // in the order of the egg
	Notes       []string      `json:"notes"`       // what the spec does not have, and why
	Spec        ContainerSpec `json:"spec"`        // as a request; to be used if no variable has an error
}

// EggChoice is an image or a startup command of an egg.
type EggChoice struct {
	Name  string `json:"name"`  // as people see it
	Value string `json:"value"` // the reference, or the command
}

// EggVariable is a variable of an egg with its value for one container.
type EggVariable struct {
	Name        string   `json:"name"`        // in env
	Title       string   `json:"title"`       // as people see it
	Description string   `json:"description"` // of the egg
	Default     string   `json:"default"`     // the value without a request
	Value       string   `json:"value"`       // for this container
	Rules       []string `json:"rules"`       // such as required, integer, max:20
	Editable    bool     `json:"editable"`    // false: by the administrator alone
	Viewable    bool     `json:"viewable"`    // false: hidden from the customer
	Error       string   `json:"error"`       // the rule that the value breaks; empty: none
}
