package cairn_test

import (
	"errors"
)

var errDisk = errors.New("the disk is bad")
