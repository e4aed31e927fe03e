/* SPDX-License-Identifier: ISC */
#include "setup/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/database_config.h"
#include "config/peer_config.h"
#include "config/snapshot.h"
#include "config/user_config.h"
#include "config/userlist.h"
#include "setup/draft_parts.h"

static bool refuse(char *why, size_t size, const char *reason)
{
	snprintf(why, size, "%s", reason);
	return false;
}

static bool refuse_memory(char *why, size_t size)
{
	return refuse(why, size, "out of memory");
}

/* --- items -------------------------------------------------------------------------------- */

static void drop_text(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static struct draft_item *find_item(const struct draft_items *items, const char *name)
{
	for (size_t i = 0; i < items->count; i++) {
		if (strcmp(items->at[i].name, name) == 0)
			return &items->at[i];
	}
	return NULL;
}

/* Pointers to other items of the list are invalid afterwards. NULL when out of memory. */
static struct draft_item *find_or_add(struct draft_items *items, const char *name)
{
	struct draft_item *item = find_item(items, name);
	char *copy;

	if (item)
		return item;
	if (items->count == items->capacity) {
		const size_t capacity = items->capacity ? items->capacity * 2 : 8;
		/* Items hold pointers to secrets, never secrets. */
		struct draft_item *at = realloc(items->at, capacity * sizeof(*at));

		if (!at)
			return NULL;
		items->at = at;
		items->capacity = capacity;
	}
	copy = strdup(name);
	if (!copy)
		return NULL;
	item = &items->at[items->count++];
	*item = (struct draft_item){.name = copy};
	return item;
}

static void free_items(struct draft_items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		struct draft_item *item = &items->at[i];

		for (size_t k = 0; k < item->keys.count; k++) {
			drop_text(&item->keys.at[k].name);
			drop_text(&item->keys.at[k].value);
		}
		free(item->keys.at);
		drop_text(&item->name);
		drop_text(&item->value);
		drop_text(&item->remark);
	}
	free(items->at);
	*items = (struct draft_items){0};
}

/* Replace the value. Returns false when out of memory. */
static bool set_value(struct draft_item *item, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return false;
	drop_text(&item->value);
	item->value = copy;
	item->made = true;
	return true;
}

static const char *value_of(const struct draft_items *items, const char *name)
{
	const struct draft_item *item = find_item(items, name);

	return item ? item->value : NULL;
}

/* --- draft -------------------------------------------------------------------------------- */

struct draft *draft_new(void)
{
	struct draft *draft = calloc(1, sizeof(*draft));

	if (draft && !settings_defaults(&draft->settings)) {
		draft_free(draft);
		return NULL;
	}
	return draft;
}

void draft_free(struct draft *draft)
{
	if (!draft)
		return;
	for (size_t i = 0; i < DRAFT_SECTIONS; i++) {
		free_items(&draft->sections[i]);
		drop_text(&draft->section_remarks[i]);
	}
	drop_text(&draft->title);
	free_items(&draft->users);
	settings_free(&draft->settings);
	problems_free(&draft->findings);
	free(draft);
}

struct problems *draft_findings(struct draft *draft)
{
	return &draft->findings;
}

/* --- settings ----------------------------------------------------------------------------- */

/* An ini file has one value in a line, without blanks around it. */
static bool fits_line(const char *value, char *why, size_t size)
{
	const size_t length = strlen(value);

	if (strpbrk(value, "\r\n"))
		return refuse(why, size, "a value is one line");
	if (length > 0 && (strchr(" \t\f\v", value[0]) || strchr(" \t\f\v", value[length - 1])))
		return refuse(why, size, "a value does not begin or end with a blank");
	return true;
}

/* A file could not hold the value: what looks like a comment is cut, or warned of. */
static bool has_comment(const struct setting_row *row, const char *value)
{
	enum setting_comment kind;

	return value[settings_find_comment(row, value, &kind)] != '\0';
}

bool draft_set(struct draft *draft, const char *name, const char *value, char *why, size_t size)
{
	const struct setting_row *row = settings_find(name);
	const char *nearest = row ? NULL : settings_nearest(name);
	struct draft_item *item;

	if (nearest) {
		snprintf(why, size, "there is no such setting: did you mean %s?", nearest);
		return false;
	}
	if (!row)
		return refuse(why, size, "there is no such setting");
	if (!fits_line(value, why, size))
		return false;
	if (has_comment(row, value))
		return refuse(why, size, "the value holds ; or #, which starts a comment");
	item = find_or_add(&draft->sections[DRAFT_MAIN], name);
	if (!item)
		return refuse_memory(why, size);
	return settings_set(&draft->settings, name, value, why, size) &&
		(set_value(item, value) || refuse_memory(why, size));
}

const char *draft_get(const struct draft *draft, const char *name)
{
	return value_of(&draft->sections[DRAFT_MAIN], name);
}

/* --- entries ------------------------------------------------------------------------------ */

static bool parses(enum draft_section section, const struct ini_place *place, const char *name,
	const char *text, struct problems *problems)
{
	struct database_config *database;
	struct user_config *user;
	struct peer_config *peer;

	switch (section) {
	case DRAFT_DATABASES:
		database = database_config_parse(place, name, text, false, problems);
		database_config_free(database);
		return database != NULL;
	case DRAFT_USERS:
		user = user_config_parse(place, name, text, problems);
		user_config_free(user);
		return user != NULL;
	case DRAFT_PEERS:
		peer = peer_config_parse(place, name, text, problems);
		peer_config_free(peer);
		return peer != NULL;
	case DRAFT_MAIN:
	case DRAFT_SECTIONS:
		break;
	}
	return false;
}

/* The problem's text starts with the name of the entry, which the caller names itself. */
static bool refuse_entry(
	const struct problems *problems, const char *name, char *why, size_t size)
{
	const struct problem *problem = problems_next(problems, NULL);
	const size_t length = strlen(name);
	const char *text = problem ? problem->text : "out of memory";

	if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
		text += length + 2;
	return refuse(why, size, text);
}

/* Parse the entry as the configuration will. */
static bool check_entry(
	enum draft_section section, const struct draft_item *entry, char *why, size_t size)
{
	const struct ini_place place = {.file = "draft", .line = 1};
	struct problems problems = {0};
	struct buffer text;
	bool good = false;

	buffer_init_secret(&text);
	if (draft_write_keys(entry, DRAFT_SHOW_SECRETS, &text) && buffer_append(&text, "", 1))
		good = parses(section, &place, entry->name, (const char *)text.data, &problems);
	if (!good)
		refuse_entry(&problems, entry->name, why, size);
	buffer_wipe(&text);
	problems_free(&problems);
	return good;
}

/*
 * A name that has to be quoted cannot hold the quote, and a name is in one line. Longer ones than
 * any section takes are refused before they are looked up among all others.
 */
static bool check_name(const char *name, char *why, size_t size)
{
	if (name[0] == '\0')
		return refuse(why, size, "a name is not empty");
	if (strlen(name) > USER_NAME_LIMIT)
		return refuse(why, size, "the name is too long");
	if (strpbrk(name, "'\r\n"))
		return refuse(why, size, "a name of an ini file has no quote and no line end");
	return true;
}

static void remove_key(struct draft_items *keys, const char *name)
{
	struct draft_item *key = find_item(keys, name);

	if (!key)
		return;
	drop_text(&key->name);
	drop_text(&key->value);
	keys->count--;
	memmove(key, key + 1, (size_t)(&keys->at[keys->count] - key) * sizeof(*key));
}

/* Change one key and check the entry; undo the change if it is not allowed. */
static bool change_key(enum draft_section section, struct draft_item *entry, const char *name,
	const char *value, char *why, size_t size)
{
	struct draft_item *key = find_or_add(&entry->keys, name);
	char *former;

	if (!key)
		return refuse_memory(why, size);
	former = key->value;
	key->value = NULL;
	if (!set_value(key, value))
		refuse_memory(why, size);
	else if (check_entry(section, entry, why, size)) {
		drop_text(&former);
		return true;
	}
	if (!former) {
		remove_key(&entry->keys, name);
		return false;
	}
	drop_text(&key->value);
	key->value = former;
	return false;
}

/* The entry to change: one that is not made yet stays unmade until its first key is good. */
static struct draft_item *entry_for(struct draft *draft, enum draft_section section,
	const char *name, char *why, size_t size)
{
	struct draft_item *entry;

	if (!check_name(name, why, size))
		return NULL;
	entry = find_or_add(&draft->sections[section], name);
	if (!entry)
		refuse_memory(why, size);
	return entry;
}

bool draft_put(struct draft *draft, enum draft_section section, const char *name,
	const char *key, const char *value, char *why, size_t size)
{
	struct draft_item *entry = entry_for(draft, section, name, why, size);

	if (!entry)
		return false;
	if (strpbrk(value, "\r\n"))
		return refuse(why, size, "a value is one line");
	if (value[0] == '\0')
		remove_key(&entry->keys, key);
	else if (!change_key(section, entry, key, value, why, size))
		return false;
	entry->made = true;
	return true;
}

bool draft_add_entry(struct draft *draft, enum draft_section section, const char *name,
	char *why, size_t size)
{
	struct draft_item *entry = entry_for(draft, section, name, why, size);

	if (!entry || !check_entry(section, entry, why, size))
		return false;
	entry->made = true;
	return true;
}

bool draft_has_entry(const struct draft *draft, enum draft_section section, const char *name)
{
	const struct draft_item *entry = find_item(&draft->sections[section], name);

	return entry && entry->made;
}

const char *draft_entry(const struct draft *draft, enum draft_section section, size_t index)
{
	const struct draft_items *items = &draft->sections[section];

	for (size_t i = 0; i < items->count; i++) {
		if (items->at[i].made && index-- == 0)
			return items->at[i].name;
	}
	return NULL;
}

const char *draft_key(const struct draft *draft, enum draft_section section, const char *name,
	const char *key)
{
	const struct draft_item *entry = find_item(&draft->sections[section], name);

	return entry ? value_of(&entry->keys, key) : NULL;
}

/* --- remarks ------------------------------------------------------------------------------ */

/* Lines are collected: a further remark stands below the former. */
static bool add_lines(char **remark, const char *text)
{
	char *lines;

	if (asprintf(&lines, "%s%s%s", *remark ? *remark : "", *remark ? "\n" : "", text) < 0)
		return false;
	drop_text(remark);
	*remark = lines;
	return true;
}

bool draft_remark(
	struct draft *draft, enum draft_section section, const char *name, const char *text)
{
	struct draft_item *item;

	if (!name)
		return add_lines(&draft->section_remarks[section], text);
	item = find_or_add(&draft->sections[section], name);
	return item && add_lines(&item->remark, text);
}

bool draft_title(struct draft *draft, const char *text)
{
	return add_lines(&draft->title, text);
}

/* --- users -------------------------------------------------------------------------------- */

/* Length in bytes inside the quotes of an auth_file. */
static size_t quoted_length(const char *text)
{
	size_t length = 0;

	for (; *text; text++)
		length += *text == '"' ? 2 : 1;
	return length;
}

bool draft_add_user(
	struct draft *draft, const char *name, const char *secret, char *why, size_t size)
{
	struct draft_item *user;

	if (strpbrk(name, "\r\n") || strpbrk(secret, "\r\n"))
		return refuse(why, size, "names and passwords are one line");
	if (quoted_length(name) > USERLIST_NAME_LIMIT)
		return refuse(why, size, "a user name has at most 127 bytes");
	if (quoted_length(secret) > USERLIST_SECRET_LIMIT)
		return refuse(why, size, "a password has at most 65530 bytes");
	user = find_or_add(&draft->users, name);
	return (user && set_value(user, secret)) || refuse_memory(why, size);
}

const char *draft_user_secret(const struct draft *draft, const char *name)
{
	return value_of(&draft->users, name);
}

const char *draft_user(const struct draft *draft, size_t index)
{
	return index < draft->users.count ? draft->users.at[index].name : NULL;
}

size_t draft_user_count(const struct draft *draft)
{
	return draft->users.count;
}

/* --- check -------------------------------------------------------------------------------- */

bool draft_check(const struct draft *draft, const char *name, struct problems *problems)
{
	struct snapshot *snapshot = NULL;
	struct buffer text;

	buffer_init_secret(&text);
	if (draft_write(draft, DRAFT_SHOW_SECRETS, &text))
		snapshot = snapshot_parse(
			name, (const char *)text.data, text.length, NULL, problems);
	else
		problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
	buffer_wipe(&text);
	snapshot_unref(snapshot);
	return snapshot != NULL;
}
