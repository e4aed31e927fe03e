/* SPDX-License-Identifier: ISC */
#include "session/auth/pam_check.h"

#include <pthread.h>
#include <security/pam_appl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

/* The library's functions that are used. It is loaded when a configuration uses PAM. */
#define FUNCTIONS(ROW)                                                                         \
	ROW(pam_acct_mgmt)                                                                     \
	ROW(pam_authenticate)                                                                  \
	ROW(pam_end)                                                                           \
	ROW(pam_set_item)                                                                      \
	ROW(pam_start)                                                                         \
	ROW(pam_strerror)

#define MEMBER(name) __typeof__(name) *(name);
struct functions {
	FUNCTIONS(MEMBER)
};
#undef MEMBER

static struct functions library;

/*
 * PAM modules may start programs, which must not inherit this thread's mask of blocked signals.
 */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void prepare_forks(void)
{
	pthread_atfork(NULL, NULL, unblock_signals);
}

static void drop_answers(struct pam_response *answers, int count)
{
	for (int i = 0; i < count; i++) {
		if (answers[i].resp)
			explicit_bzero(answers[i].resp, strlen(answers[i].resp));
		free(answers[i].resp);
	}
	free(answers);
}

/*
 * The PAM conversation. A prompt without echo is answered with the password, and messages are
 * ignored. Any other prompt ends the conversation, since there is no user to ask.
 */
static int converse(int count, const struct pam_message **messages,
	struct pam_response **answers, void *context)
{
	const struct external_auth *request = context;
	struct pam_response *all;

	if (count < 1 || count > PAM_MAX_NUM_MSG)
		return PAM_CONV_ERR;
	all = calloc((size_t)count, sizeof(*all));
	for (int i = 0; all && i < count; i++) {
		const int style = messages[i]->msg_style;

		if (style == PAM_PROMPT_ECHO_OFF)
			all[i].resp = strdup(request->password);
		if (style == PAM_PROMPT_ECHO_OFF
				? !all[i].resp
				: style != PAM_ERROR_MSG && style != PAM_TEXT_INFO) {
			drop_answers(all, count);
			return PAM_CONV_ERR;
		}
	}
	*answers = all;
	return all ? PAM_SUCCESS : PAM_BUF_ERR;
}

/*
 * Called by the library instead of sleeping: this thread is free for other checks, and the loop
 * sends the refusal later.
 */
static void note_delay(int result, unsigned delay, void *context)
{
	struct external_auth *request = context;

	if (result != PAM_SUCCESS)
		request->delay = delay;
}

/* The library takes the function as a pointer to data. In POSIX both have the same format. */
static int set_delay_function(pam_handle_t *pam)
{
	void (*const function)(int, unsigned, void *) = note_delay;
	const void *data;

	memcpy(&data, &function, sizeof(data));
	return library.pam_set_item(pam, PAM_FAIL_DELAY, data);
}

static bool is_about_the_user(int result)
{
	switch (result) {
	case PAM_AUTH_ERR:
	case PAM_USER_UNKNOWN:
	case PAM_MAXTRIES:
	case PAM_PERM_DENIED:
	case PAM_ACCT_EXPIRED:
	case PAM_NEW_AUTHTOK_REQD:
	case PAM_CRED_EXPIRED:
		return true;
	default:
		return false;
	}
}

/*
 * Authenticate and check the account. *step is the step that has failed, if the result is an
 * error.
 */
static int check(pam_handle_t *pam, const char *remote, const char **step)
{
	int result;

	*step = "cannot be set up";
	result = library.pam_set_item(pam, PAM_RHOST, remote);
	if (result == PAM_SUCCESS)
		result = set_delay_function(pam);
	if (result != PAM_SUCCESS)
		return result;
	*step = "pam_authenticate()";
	result = library.pam_authenticate(pam, PAM_SILENT);
	if (result != PAM_SUCCESS)
		return result;
	*step = "pam_acct_mgmt()";
	return library.pam_acct_mgmt(pam, PAM_SILENT);
}

void pam_check(struct external_auth *request)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct pam_conv conversation = {converse, request};
	const char *step = "pam_start()";
	pam_handle_t *pam = NULL;
	int result;

	pthread_once(&once, prepare_forks);
	result = library.pam_start(PAM_CHECK_SERVICE, request->user, &conversation, &pam);
	if (result == PAM_SUCCESS)
		result = check(pam, request->remote, &step);
	request->answer = result == PAM_SUCCESS ? EXTERNAL_AUTH_RIGHT
		: is_about_the_user(result)	? EXTERNAL_AUTH_WRONG
						: EXTERNAL_AUTH_FAILED;
	request->expired = result == PAM_ACCT_EXPIRED || result == PAM_CRED_EXPIRED ||
		result == PAM_NEW_AUTHTOK_REQD;
	snprintf(request->why, sizeof(request->why), "%s: %s", step,
		library.pam_strerror(pam, result));
	if (pam)
		library.pam_end(pam, result);
}

bool pam_check_load(char *why, size_t size)
{
#define SYMBOL(name) {#name, offsetof(struct functions, name)},
	static const struct library_symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL

	return library_load(
		PAM_LIBRARY, symbols, sizeof(symbols) / sizeof(*symbols), &library, why, size);
}
