package directory

import "syscall"

var unsyncable = []error{syscall.EINVAL}
