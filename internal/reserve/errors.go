package reserve

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// IsFull reports whether err says that the disk is full.
func IsFull(err error) bool { return errors.Is(err, base.ErrNoSpace) || vfs.IsNoSpace(err) }

// SpaceError gives errors of a full disk their name, but for one that has poisoned the store: space does not help it.
func SpaceError(err error) error {
	if err != nil && vfs.IsNoSpace(err) && !errors.Is(err, base.ErrNoSpace) && !errors.Is(err, base.ErrPoisoned) {
		return fmt.Errorf("%w: %w", base.ErrNoSpace, err)
	}
	return err
}
