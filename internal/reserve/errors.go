package reserve

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// IsFull reports whether err says that the disk is full.
func IsFull(err error) bool { return errors.Is(err, base.ErrNoSpace) || vfs.IsNoSpace(err) }

// SpaceError gives errors of a full disk their name, and takes it from those that space does not help: the store is
// poisoned, or the outcome of a commit unknown.
func SpaceError(err error) error {
	final := errors.Is(err, base.ErrPoisoned) || errors.Is(err, base.ErrCommitUnknown)
	switch named := errors.Is(err, base.ErrNoSpace); {
	case named && final:
		return &finalError{err}
	case !named && !final && vfs.IsNoSpace(err):
		return fmt.Errorf("%w: %w", base.ErrNoSpace, err)
	}
	return err
}

// finalError matches what the error in it does, but for base.ErrNoSpace.
type finalError struct{ error }

func (e *finalError) Is(target error) bool {
	return target != base.ErrNoSpace && errors.Is(e.error, target)
}

func (e *finalError) As(target any) bool { return errors.As(e.error, target) }
