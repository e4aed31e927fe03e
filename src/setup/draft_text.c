/* SPDX-License-Identifier: ISC */
/* Writes a draft: the quotes of ini files, connection strings and auth_files. */
#include <string.h>

#include "setup/draft_parts.h"

static const char masked[] = "********";

static bool put(struct buffer *out, const char *text)
{
	return buffer_append(out, text, strlen(text));
}

/* Between quotes, with each quote inside doubled. */
static bool put_quoted(struct buffer *out, const char *text, char quote)
{
	bool done = buffer_append(out, &quote, 1);

	for (; done && *text; text++)
		done = buffer_append(out, text, 1) &&
			(*text != quote || buffer_append(out, &quote, 1));
	return done && buffer_append(out, &quote, 1);
}

/* Each line of the text as a comment. */
static bool put_remark(struct buffer *out, const char *text)
{
	while (text) {
		const size_t length = strcspn(text, "\r\n");
		const bool more = text[length] != '\0';

		if (!put(out, length > 0 ? "; " : ";") || !buffer_append(out, text, length) ||
			!put(out, "\n"))
			return false;
		text += length;
		if (text[0] == '\r' && text[1] == '\n')
			text++;
		text = more ? text + 1 : NULL;
	}
	return true;
}

/* Keys of other bytes need single quotes. */
static bool is_bare_key(const char *name)
{
	static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_.-*";

	return name[strspn(name, bare)] == '\0';
}

static bool put_name(struct buffer *out, const char *name)
{
	return is_bare_key(name) ? put(out, name) : put_quoted(out, name, '\'');
}

/* --- entries ------------------------------------------------------------------------------ */

/* Only bytes without a meaning in connection strings may stand without quotes. */
static bool is_bare_value(const char *value)
{
	return value[0] != '\0' && !strpbrk(value, " \t'\"=;#\\\f\v");
}

static const char *shown_key(const struct draft_item *key, enum draft_secrets secrets)
{
	const bool is_secret = strcmp(key->name, "password") == 0;

	return secrets == DRAFT_MASK_SECRETS && is_secret ? masked : key->value;
}

bool draft_write_keys(
	const struct draft_item *entry, enum draft_secrets secrets, struct buffer *out)
{
	for (size_t i = 0; i < entry->keys.count; i++) {
		const struct draft_item *key = &entry->keys.at[i];
		const char *value = shown_key(key, secrets);

		if ((i > 0 && !put(out, " ")) || !put(out, key->name) || !put(out, "="))
			return false;
		if (!(is_bare_value(value) ? put(out, value) : put_quoted(out, value, '\'')))
			return false;
	}
	return true;
}

/* --- settings ----------------------------------------------------------------------------- */

bool draft_hides(const char *name)
{
	return strcmp(name, "auth_ldap_options") == 0;
}

/* Without a password in it the value is shown, as by SHOW CONFIG. */
static const char *shown_setting(
	const struct draft *draft, const struct draft_item *item, enum draft_secrets secrets)
{
	const char *shown;
	char text[32];

	if (secrets == DRAFT_SHOW_SECRETS || !draft_hides(item->name))
		return item->value;
	shown = settings_render(
		settings_find(item->name), &draft->settings, text, sizeof(text));
	return shown && strcmp(shown, item->value) == 0 ? item->value : masked;
}

/* --- sections ----------------------------------------------------------------------------- */

static const char *const headings[] = {
	[DRAFT_DATABASES] = "[databases]\n",
	[DRAFT_USERS] = "[users]\n",
	[DRAFT_PEERS] = "[peers]\n",
	[DRAFT_MAIN] = "[pgbouncer]\n",
};

static bool put_item(const struct draft *draft, const struct draft_item *item,
	enum draft_secrets secrets, struct buffer *out)
{
	if ((item->remark && !put_remark(out, item->remark)) || !put_name(out, item->name))
		return false;
	if (!item->value)
		return put(out, item->keys.count > 0 ? " = " : " =") &&
			draft_write_keys(item, secrets, out) && put(out, "\n");
	return put(out, item->value[0] != '\0' ? " = " : " =") &&
		put(out, shown_setting(draft, item, secrets)) && put(out, "\n");
}

static bool is_empty(const struct draft *draft, enum draft_section section)
{
	const struct draft_items *items = &draft->sections[section];

	for (size_t i = 0; i < items->count; i++) {
		if (items->at[i].made)
			return false;
	}
	return !draft->section_remarks[section];
}

/* A configuration must have the main section. */
static bool put_section(const struct draft *draft, enum draft_section section,
	enum draft_secrets secrets, struct buffer *out)
{
	const struct draft_items *items = &draft->sections[section];
	const char *remark = draft->section_remarks[section];

	if (section != DRAFT_MAIN && is_empty(draft, section))
		return true;
	if ((out->length > 0 && !put(out, "\n")) || !put(out, headings[section]))
		return false;
	if (remark && !put_remark(out, remark))
		return false;
	for (size_t i = 0; i < items->count; i++) {
		if (items->at[i].made && !put_item(draft, &items->at[i], secrets, out))
			return false;
	}
	return true;
}

bool draft_write(const struct draft *draft, enum draft_secrets secrets, struct buffer *out)
{
	if (draft->title && !put_remark(out, draft->title))
		return false;
	for (unsigned i = 0; i < DRAFT_SECTIONS; i++) {
		if (!put_section(draft, (enum draft_section)i, secrets, out))
			return false;
	}
	return true;
}

bool draft_write_users(
	const struct draft *draft, enum draft_secrets secrets, struct buffer *out)
{
	for (size_t i = 0; i < draft->users.count; i++) {
		const struct draft_item *user = &draft->users.at[i];
		const char *secret = secrets == DRAFT_MASK_SECRETS ? masked : user->value;

		if (!put_quoted(out, user->name, '"') || !put(out, " ") ||
			!put_quoted(out, secret, '"') || !put(out, "\n"))
			return false;
	}
	return true;
}
