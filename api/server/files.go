package server

// Files does what is asked of the content of volumes.
type Files interface{}

// fileRoutes are the routes of volumes' files.
func (s *Server) fileRoutes() []route { return nil }
