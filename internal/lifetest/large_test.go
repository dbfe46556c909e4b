package lifetest

func (s *server) large(r request) error              { return nil }
func (s *server) sustain(r request, a *answer) error { return nil }
