/* SPDX-License-Identifier: ISC */
/*
 * A PAM module. Its argument is a folder: a password is right if the file with the name of the user
 * contains it. Some names have further effects:
 *
 *	asks_aloud   asks a question with echo
 *	chatty       sends messages before it asks
 *	hangs        waits until the other end of the pipe `gate` is opened
 *	slow         delays the answer to a wrong password by two seconds
 *	slower       by twenty seconds
 *	expired      has an expired account
 *
 * Each authentication writes a line to `log`: service, user, host, silent or loud.
 *
 * Destructors of libraries run when the process calls exit(); this one aborts if a thread is still
 * running in the module.
 */
#include <fcntl.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int at_work;

__attribute__((destructor)) static void on_exit_check(void)
{
	if (atomic_load(&at_work) > 0)
		abort();
}

static const char *item(pam_handle_t *pam, int type)
{
	const void *value = NULL;

	return pam_get_item(pam, type, &value) == PAM_SUCCESS && value ? value : "nothing";
}

static void note(pam_handle_t *pam, const char *folder, const char *user, int flags)
{
	char path[500];
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", folder);
	log = fopen(path, "a");
	if (!log)
		return;
	fprintf(log, "%s %s %s %s\n", item(pam, PAM_SERVICE), user, item(pam, PAM_RHOST),
		flags & PAM_SILENT ? "silent" : "loud");
	fclose(log);
}

static void wait_at_gate(const char *folder)
{
	char path[500];
	int gate;

	snprintf(path, sizeof(path), "%s/gate", folder);
	atomic_fetch_add(&at_work, 1);
	gate = open(path, O_RDONLY | O_CLOEXEC);
	if (gate >= 0)
		close(gate);
	atomic_fetch_sub(&at_work, 1);
}

static int compare(const char *folder, const char *user, const char *password)
{
	char path[500], *expected = calloc(1, 100000);
	FILE *file;
	int equal;

	snprintf(path, sizeof(path), "%s/%s", folder, user);
	file = fopen(path, "r");
	if (!file || !expected) {
		free(expected);
		return PAM_USER_UNKNOWN;
	}
	expected[fread(expected, 1, 99999, file)] = '\0';
	fclose(file);
	equal = strcmp(expected, password) == 0;
	free(expected);
	return equal ? PAM_SUCCESS : PAM_AUTH_ERR;
}

int pam_sm_authenticate(pam_handle_t *pam, int flags, int count, const char **arguments)
{
	const char *user, *folder = count > 0 ? arguments[0] : "/nonexistent";
	char *password = NULL, *shown = NULL;
	int result;

	if (pam_get_user(pam, &user, NULL) != PAM_SUCCESS)
		return PAM_SERVICE_ERR;
	note(pam, folder, user, flags);
	if (strcmp(user, "asks_aloud") == 0 &&
		pam_prompt(pam, PAM_PROMPT_ECHO_ON, &shown, "Name: ") != PAM_SUCCESS)
		return PAM_CONV_ERR;
	if (strcmp(user, "chatty") == 0) {
		pam_info(pam, "Hello");
		pam_error(pam, "Nothing is wrong");
	}
	if (strcmp(user, "hangs") == 0)
		wait_at_gate(folder);
	if (strcmp(user, "slow") == 0)
		pam_fail_delay(pam, 2000000);
	if (strcmp(user, "slower") == 0)
		pam_fail_delay(pam, 20000000);
	if (pam_prompt(pam, PAM_PROMPT_ECHO_OFF, &password, "Password: ") != PAM_SUCCESS ||
		!password)
		return PAM_CONV_ERR;
	result = compare(folder, user, password);
	free(password);
	free(shown);
	return result;
}

int pam_sm_setcred(pam_handle_t *pam, int flags, int count, const char **arguments)
{
	(void)pam, (void)flags, (void)count, (void)arguments;
	return PAM_SUCCESS;
}

int pam_sm_acct_mgmt(pam_handle_t *pam, int flags, int count, const char **arguments)
{
	const char *user;

	(void)flags, (void)count, (void)arguments;
	if (pam_get_user(pam, &user, NULL) != PAM_SUCCESS)
		return PAM_SERVICE_ERR;
	return strcmp(user, "expired") == 0 ? PAM_ACCT_EXPIRED : PAM_SUCCESS;
}
