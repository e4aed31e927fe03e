/* SPDX-License-Identifier: ISC */
/*
 * A time-lapse: for the program that has this library preloaded, $CLOCK_SPEED seconds pass in one.
 * What it waits for by timers and in epoll_wait() comes earlier to match; the time of day is as it is.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { NSEC_PER_SEC = 1000000000 };

static long long speed(void)
{
	static long long value;
	const char *text = value ? NULL : getenv("CLOCK_SPEED");

	if (!value)
		value = text && atoll(text) > 0 ? atoll(text) : 1;
	return value;
}

static long long to_nsec(const struct timespec *time)
{
	return time->tv_sec * (long long)NSEC_PER_SEC + time->tv_nsec;
}

static struct timespec of_nsec(long long time)
{
	return (struct timespec){.tv_sec = time / NSEC_PER_SEC, .tv_nsec = time % NSEC_PER_SEC};
}

/* What has passed since the first call counts many times; a uint64 is enough for decades of it. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static long long began;
	const long result = syscall(SYS_clock_gettime, clock, now);
	long long at;

	if (result != 0 || (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE))
		return (int)result;
	at = to_nsec(now);
	if (!began)
		began = at;
	*now = of_nsec(began + (at - began) * speed());
	return 0;
}

static struct timespec shorter(const struct timespec *time)
{
	const long long length = to_nsec(time);

	return of_nsec(length > 0 && length < speed() ? 1 : length / speed());
}

int timerfd_settime(int fd, int flags, const struct itimerspec *wanted, struct itimerspec *old)
{
	const struct itimerspec wait = {
		.it_interval = shorter(&wanted->it_interval),
		.it_value = shorter(&wanted->it_value),
	};

	return (int)syscall(SYS_timerfd_settime, fd, flags, &wait, old);
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
	const long long wait =
		timeout > 0 ? (timeout + speed() - 1) / speed() : (long long)timeout;

	return (int)syscall(SYS_epoll_pwait, fd, events, room, (int)wait, NULL, 0);
}
