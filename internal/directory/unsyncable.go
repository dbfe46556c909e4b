//go:build !plan9

package directory

import "syscall"

// unsyncable are the system's errors that say that a directory cannot be synced at all, but for those that package fs has.
// What is read-only takes no store either, so one in it is on another file system, whose directory was there.
var unsyncable = []error{syscall.EINVAL, syscall.ENOTTY, syscall.EROFS}
