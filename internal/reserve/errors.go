package reserve

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// IsFull reports whether err says that the disk is full.
func IsFull(err error) bool { return errors.Is(err, base.ErrNoSpace) || vfs.IsNoSpace(err) }

// SpaceError gives errors of a full disk their name.
func SpaceError(err error) error {
	if err != nil && vfs.IsNoSpace(err) && !errors.Is(err, base.ErrNoSpace) {
		return fmt.Errorf("%w: %w", base.ErrNoSpace, err)
	}
	return err
}
