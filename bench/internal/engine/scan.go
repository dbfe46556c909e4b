package engine

import "errors"

// errEnough ends a walk that has shown what was asked for.
var errEnough = errors.New("enough")

// limited passes n pairs on to see and then answers errEnough.
func limited(n int, see func(key, value []byte) error) func(key, value []byte) error {
	return func(key, value []byte) error {
		if err := see(key, value); err != nil {
			return err
		}
		if n--; n == 0 {
			return errEnough
		}
		return nil
	}
}

// ended turns errEnough into no error.
func ended(err error) error {
	if err == errEnough {
		return nil
	}
	return err
}
